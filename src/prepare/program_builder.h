// Lifetimes and offsets -> Program.
#pragma once

#include "plan/placement.h"
#include "prepare/prepared_model.h"
#include "prepare/program.h"

namespace plimsoll {

// A tensor with the elements that facts know, aligned, in `arena`.
TensorView materialize(const Facts& facts, BumpArena& arena);

// Room for one run of the program and its bodies.
Frame* make_frame(const Program& program, BumpArena& arena);

// Binds every step. Facts need not outlive the call; what the program needs is copied to `arena`.
Program* build_program(const Graph& graph, FactsTable& facts, const Lifetimes& lifetimes,
                       const plan::Placement& placement, const PreparedModel& model, const Program* outer,
                       BumpArena& arena);

}  // namespace plimsoll
