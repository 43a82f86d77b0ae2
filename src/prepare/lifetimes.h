// From a graph with facts to steps, buffers and lifetimes: what must be in memory, and when.
//
// The analysis works on dimensions as expressions: with symbolic facts it gives the formula, with
// concrete facts the problem that a placer solves. It neither allocates tensor memory nor runs.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "graph/infer.h"
#include "plan/placement.h"

namespace plimsoll {

// Where the bytes of a value are.
enum class Where : uint8_t {
  kArena,     // in the planned arena: buffer `index`, at `offset`
  kConstant,  // known before the run: the data of edge `index`, at `offset`
  kInput,     // in input `index` of the graph, at `offset`
  kOutput,    // in output `index` of the graph, at `offset`
  kOuter,     // in the enclosing graph: its edge `index`, at `offset`
  kDynamic,   // in memory taken during the run
};

struct Location {
  Where where = Where::kDynamic;
  uint32_t index = 0;
  Dim offset = 0;
};

struct BufferInfo {
  Dim size = 0;
  int64_t lower = 0, upper = 0;  // half-open range of steps
  const Edge* edge = nullptr;    // the value that gives it its size; null: memory of bodies without results
  bool live = true;              // false once merged into another buffer or moved to an output
};

// A node that runs. Nodes that are views or whose results are constants do not.
struct StepInfo {
  const Node* node = nullptr;
  bool dynamic = false;  // its shapes are inferred during the run
  Dim scratch_bytes = 0;
  uint32_t nested = kNone;  // buffer for the memory of its bodies
  static constexpr uint32_t kNone = ~0u;
};

struct Lifetimes {
  std::vector<StepInfo> steps;
  std::vector<BufferInfo> buffers;
  std::unordered_map<uint32_t, Location> locations;  // by edge id
  std::vector<bool> output_copied;                   // graph output i is copied from its value at the end
  // One analysis per body, in the order of bodies_of(node), by node id; null where it is never taken.
  std::unordered_map<uint32_t, std::vector<std::unique_ptr<Lifetimes>>> bodies;
  bool depends_on_data = false;

  // What all steps need at their worst: live bytes at each step.
  std::vector<Dim> live_bytes() const;
  Dim scratch_bytes() const;  // over all steps, bodies included
  // What a placer has to solve. Sizes must be constants.
  plan::Problem problem() const;
  // Memory for all buffers: the placed peak where sizes are constants, the most live bytes otherwise.
  Dim arena_bytes(bool naive) const;
};

// Offsets by the placer of our choice. Never fails: capacity is unlimited.
plan::Placement place(const plan::Problem& problem, bool naive);

struct LifetimeOptions {
  int threads = 1;
  bool naive = false;                 // no memory is used twice
  bool reuse = true;                  // outputs may overwrite inputs that nobody needs any more
  bool pieces = true;                 // the inputs of a Concat may be written straight into its output
  const PackPolicy* packs = nullptr;  // null: no weight is packed
};

// `is_root`: the graph's outputs are memory of the caller.
Lifetimes analyze(const Graph& graph, FactsTable& facts, const LifetimeOptions& options, bool is_root = true);

// Bytes of a value with these facts.
Dim value_bytes(const Facts& facts);
// Its shape does not depend on data.
bool is_static(const Facts& facts);
// Every element is known and they are few, so that nothing need be computed.
inline constexpr int64_t kMaxKnownBytes = 64 << 10;
bool is_known(const Facts& facts);

}  // namespace plimsoll
