// Lifetimes and offsets -> Program.
#pragma once

#include "plan/placement.h"
#include "prepare/prepared_model.h"
#include "prepare/program.h"

namespace plimsoll {

// A tensor with the elements that facts know, aligned, in `arena`.
TensorView materialize(const Facts& facts, BumpArena& arena);

// A program and what it knows of constant values (Space::kKnown), bodies included.
struct BuiltProgram {
  Program* program = nullptr;
  std::span<std::byte* const> known;
};
// Binds every step. Facts need not outlive the call; what the program needs is copied to `arena`.
BuiltProgram build_program(FactsTable& facts, const Lifetimes& lifetimes, const plan::Placement& placement,
                           const PreparedModel& model, BumpArena& arena, TransientMemory& memory);

// Room for one run of the program and its bodies.
Frame* make_frame(const Program& program, BumpArena& arena);
size_t frame_bytes(const Program& program);  // that make_frame() takes at most
// Gives a frame the addresses of constants. Weights must be loaded.
void bind_constants(Frame& frame, const Weights& weights, std::span<std::byte* const> known);

}  // namespace plimsoll
