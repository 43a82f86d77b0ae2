// Ways to run a graph that differ in the memory they need, and the choice between them.
#pragma once

#include "prepare/lifetimes.h"
#include "prepare/recompute.h"

namespace plimsoll {

enum class Effort : uint8_t {
  kQuick,      // the file's order: what is fast to plan and to run
  kThorough,   // every order: for limits that the quick one does not fit
  kRecompute,  // nodes may run again: for limits that no order fits
};

struct Proposal {
  Lifetimes lifetimes;
  plan::Placement placement;
  int64_t most_live_bytes = 0;  // no placement of these lifetimes can be below
  size_t peak_step = 0;         // where they are reached
  Recomputation recomputation;  // empty unless nodes run again
  int64_t peak_bytes() const { return placement.peak.empty() ? 0 : placement.peak[0]; }
};

// The proposal with the smallest peak; of equals the first. Facts are concrete. With `check`, plans are given
// to the independent checker, bodies included. With kRecompute, the fastest whose peak is at most
// `most_bytes`: no node runs again where it need not; the smallest of all if none fits. What is tried is
// charged to `budget`.
Proposal best_proposal(const Graph& root, FactsTable& facts, const LifetimeOptions& options, Effort effort,
                       bool check, TransientMemory& memory, Budget& budget, int64_t most_bytes = 0);

// Of one schedule, whatever it runs more than once.
Proposal proposal_of(const Graph& root, FactsTable& facts, const LifetimeOptions& options,
                     const Schedule& schedule, bool check, TransientMemory& memory);

}  // namespace plimsoll
