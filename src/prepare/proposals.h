// Ways to run a graph that differ in the memory they need, and the choice between them.
#pragma once

#include "prepare/lifetimes.h"

namespace plimsoll {

enum class Effort : uint8_t {
  kQuick,     // the file's order: what is fast to plan and to run
  kThorough,  // every proposal: for limits that the quick one does not fit
};

struct Proposal {
  Lifetimes lifetimes;
  plan::Placement placement;
  int64_t most_live_bytes = 0;  // no placement of these lifetimes can be below
  size_t peak_step = 0;         // where they are reached
  int64_t peak_bytes() const { return placement.peak.empty() ? 0 : placement.peak[0]; }
};

// The proposal with the smallest peak; of equals the first. Facts are concrete. With `check`, plans are given
// to the independent checker, bodies included.
Proposal best_proposal(const Graph& root, FactsTable& facts, const LifetimeOptions& options, Effort effort,
                       bool check, TransientMemory& memory);

}  // namespace plimsoll
