// Program: one graph for one concrete shape, ready for the executor. Plain arrays in an arena.
#pragma once

#include "graph/op_def.h"
#include "prepare/lifetimes.h"

namespace plimsoll {

struct ProgramValue {
  const Edge* edge = nullptr;
  Where where = Where::kDynamic;
  bool is_static = true;      // dims and bytes are known
  uint32_t index = 0;         // kInput, kOutput: of the graph; kOuter: of the enclosing program's values
  int64_t offset = 0;         // into the arena, input or output
  std::byte* data = nullptr;  // kConstant
  TensorView view;            // everything but the address
  int64_t bytes = 0;
};

inline constexpr uint32_t kNoValue = ~0u;

struct Program;

struct Step {
  const Node* node = nullptr;
  std::span<const uint32_t> inputs;  // indices of values; kNoValue where absent
  std::span<const uint32_t> outputs;
  std::span<Program* const> bodies;  // null where a body is never taken
  const void* bound = nullptr;
  bool dynamic = false;
  int64_t nested_offset = 0;    // arena offset for the memory of its bodies
  uint32_t first_body = 0;      // in the frame's array of bodies
  uint32_t first_argument = 0;  // inputs then outputs, in the frame's array of arguments
  Cost cost;
  std::span<const uint32_t> frees;  // dynamic values that nobody needs after this step
};

// A range of the arena that is dead after a step; the poison mode fills it.
struct DeadRange {
  int64_t step, offset, bytes;
};

struct Program {
  const Graph* graph = nullptr;
  std::span<Step> steps;
  std::span<ProgramValue> values;
  std::span<const uint32_t> outputs;         // indices of values
  std::span<const bool> output_copied;       // copied to the caller's memory at the end
  std::span<const DeadRange> dead;           // sorted by step
  std::span<const int64_t> carried_offsets;  // of a Loop's body: from nested_offset, two per carried value
  uint32_t argument_count = 0;
  uint32_t body_count = 0;
  int64_t arena_bytes = 0;
};

// What one run of a program writes: addresses of values. One per concurrent run.
struct Frame {
  const Program* program = nullptr;
  std::span<TensorView> values;     // one per ProgramValue
  std::span<TensorView> arguments;  // the steps' inputs and outputs, one after the other
  std::span<Frame*> bodies;         // null where a body is never taken
  // Of a Loop's body: what one iteration is given, and the carried values that it makes.
  std::span<TensorView> given, made;
};

}  // namespace plimsoll
