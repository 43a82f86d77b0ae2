// Program: one graph for one concrete shape, ready for the executor. Plain arrays in an arena, without
// addresses: what a run needs is at an offset from the base of a space.
#pragma once

#include "graph/op_def.h"
#include "prepare/lifetimes.h"

namespace plimsoll {

enum class Space : uint8_t {
  kArena,    // the planned memory of the run
  kInput,    // input `index` of the graph
  kOutput,   // output `index` of the graph
  kOuter,    // value `index` of the enclosing program
  kDynamic,  // memory taken during the run
  kWeight,   // the data of the value's edge, in the file or in a copy
  kPacked,   // packed weights
  kKnown,    // entry `index` of what the plan itself knows
};

struct Address {
  Space space = Space::kDynamic;
  uint32_t index = 0;
  int64_t offset = 0;
};

inline bool is_constant(Space space) {
  return space == Space::kWeight || space == Space::kPacked || space == Space::kKnown;
}

struct ProgramValue {
  const Edge* edge = nullptr;  // of kWeight: the one that has the data
  Address address;
  bool is_static = true;  // dims and bytes are known; otherwise dims are -1 where they are not
  TensorView view;        // everything but the address
  int64_t bytes = 0;
};

struct Program;

struct Step {
  StepKind kind = StepKind::kRun;
  bool dynamic = false;
  uint32_t output = 0;                 // kCopy: of the graph
  const Node* node = nullptr;          // kRun; otherwise whose value it is about, or null
  std::span<const uint32_t> inputs;    // indices of values; kNoValue where absent
  std::span<const uint32_t> outputs;   // kStore: the state
  std::span<Program* const> bodies;    // null where a body is never taken
  std::span<const int64_t> workspace;  // arena offsets of the pieces
  int64_t bodies_offset = 0;           // arena offset for the memory of its bodies
  int64_t scratch_offset = 0;          // arena offset of its scratch, if it has any
  const void* choice = nullptr;
  const void* bound = nullptr;
  uint32_t first_body = 0;      // in the frame's array of bodies
  uint32_t first_argument = 0;  // inputs then outputs, in the frame's array of arguments
  Cost cost;
};

// A range of the arena that is dead after a step; the poison mode fills it.
struct DeadRange {
  int64_t step, offset, bytes;
};

struct Program {
  const Graph* graph = nullptr;
  std::span<Step> steps;
  std::span<ProgramValue> values;     // those of the graph's inputs first
  std::span<const uint32_t> outputs;  // indices of values
  std::span<const DeadRange> dead;    // sorted by step
  uint32_t argument_count = 0;
  uint32_t body_count = 0;
  int64_t arena_bytes = 0;
  size_t first_change = 0;  // the first step that writes to a state, or the number of steps
};

// What one run of a program writes: addresses of values. One per concurrent run.
struct Frame {
  const Program* program = nullptr;
  std::span<TensorView> values;     // one per ProgramValue
  std::span<TensorView> arguments;  // the steps' inputs and outputs, one after the other
  std::span<Frame*> bodies;         // null where a body is never taken
  // Of a body: room for what its operator hands to it and takes from it.
  std::span<TensorView> given, made;
  // The last run that came here, and how often it has come before: random operators draw anew each time.
  uint64_t run_number = 0, turn = 0;
};

}  // namespace plimsoll
