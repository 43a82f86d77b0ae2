// From a schedule with facts to steps, buffers and lifetimes: what must be in memory, and when.
//
// The analysis works on dimensions as expressions: with symbolic facts it gives the formula, with
// concrete facts the problem that a placer solves. It neither allocates tensor memory nor runs.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "plan/solved.h"
#include "prepare/schedule.h"
#include "prepare/value_facts.h"

namespace plimsoll {

// Where the bytes of a value are.
enum class Where : uint8_t {
  kArena,     // in the planned arena: buffer `index`, at `offset`
  kConstant,  // known before the run, or state: the data of value `index`, at `offset`
  kInput,     // in input `index` of the graph, at `offset`
  kOutput,    // in output `index` of the graph, at `offset`
  kOuter,     // in the enclosing graph: the value of edge `index`, at `offset`
  kDynamic,   // in memory taken during the run
};

struct Location {
  Where where = Where::kDynamic;
  uint32_t index = 0;
  Dim offset = 0;
};

struct BufferInfo {
  enum class Kind : uint8_t { kValues, kScratch, kBodies };
  Dim size = 0;
  int64_t lower = 0, upper = 0;  // half-open range of steps
  Kind kind = Kind::kValues;
  const Edge* edge = nullptr;  // the value that gives it its size, if any
  bool live = true;            // false once moved to an output
};

enum class StepKind : uint8_t {
  kRun,    // a node's turn. Turns of nodes that are views, or whose results are constants, are no steps
  kCopy,   // an output of the graph, from where it was made to the caller's memory
  kStore,  // the next value of a state, from where it was made to the state's memory
  kDrop,   // a value of dynamic size that nobody needs any more
};

struct StepInfo {
  StepKind kind = StepKind::kRun;
  uint32_t turn = 0;         // kRun
  uint32_t value = 0;        // kCopy, kStore, kDrop
  uint32_t state = 0;        // kStore: the value that is overwritten
  uint32_t output = 0;       // kCopy: which one
  bool dynamic = false;      // its shapes are inferred during the run
  uint32_t scratch = kNone;  // buffer for its working memory
  uint32_t nested = kNone;   // buffer for its workspace and the memory of its bodies
  static constexpr uint32_t kNone = ~0u;
};

struct Lifetimes;

// What a step with bodies has in its `nested` buffer: the pieces of its workspace, then the bodies, which
// take turns.
struct NestedMemory {
  // In the resource that it is from.
  struct Delete {
    std::pmr::memory_resource* memory = nullptr;
    void operator()(Lifetimes* lifetimes) const;
  };
  explicit NestedMemory(std::pmr::memory_resource* memory) : workspace(memory), bodies(memory) {}
  std::pmr::vector<Dim> workspace;  // offsets of the pieces
  Dim bodies_offset = 0;
  // In the order of bodies_of(node); null where it is never taken.
  std::pmr::vector<std::unique_ptr<Lifetimes, Delete>> bodies;
};

struct Lifetimes {
  Lifetimes(const Graph& graph, Schedule turns, TransientMemory& memory, WantedOutputs wanted = {},
            UpdatedStates updated = {});

  const Graph* graph;
  Schedule schedule;
  ScheduledValues values;
  std::pmr::vector<StepInfo> steps;
  std::pmr::vector<BufferInfo> buffers;
  std::pmr::vector<Location> locations;                    // by value
  std::pmr::unordered_map<uint32_t, NestedMemory> nested;  // by turn
  std::optional<plan::Placement> placement;  // of a body with sizes that are constants, made once
  bool depends_on_data = false;
  bool has_pieces =
      false;  // some inputs of a Concat, here or in a body, are written straight into its output

  const Node& node(const StepInfo& step) const { return *schedule[step.turn].node; }
  // What all steps need at their worst: live bytes at each step.
  std::pmr::vector<Dim> live_bytes() const;
  // What a placer has to solve: the buffers that are live. Sizes must be constants.
  plan::Problem problem() const;
};

struct LifetimeOptions {
  int threads = 1;
  bool naive = false;                 // no memory is used twice
  bool reuse = true;                  // outputs may overwrite inputs that nobody needs any more
  bool pieces = true;                 // the inputs of a Concat may be written straight into its output
  const PackPolicy* packs = nullptr;  // null: no weight is packed
  WantedOutputs wanted;               // of the root
  // Placements known before, and where to put those that are worth a long search; null: none.
  const plan::SolvedPlacements* known = nullptr;
  plan::SolvedPlacements* solved = nullptr;
  UpdatedStates updated;  // likewise: the last of the outputs are their next values
};

// Of the root of a model, whose outputs are memory of the caller.
Lifetimes analyze(const Graph& root, FactsTable& facts, Schedule schedule, const LifetimeOptions& options,
                  TransientMemory& memory);

// Offsets by the placer of our choice. Never fails: capacity is unlimited.
plan::Placement place(const plan::Problem& problem, bool naive);
plan::Placement place(const plan::Problem& problem, const LifetimeOptions& options);

}  // namespace plimsoll
