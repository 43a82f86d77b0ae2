// One node under every truth that its operator promises.
#pragma once

#include <string>
#include <vector>

#include "ops/invoke.h"

namespace plimsoll {

// What a run made, and under which truth.
struct Outcome {
  std::string truth;
  std::vector<std::vector<std::byte>> outputs;
};

// Runs a resolved node
//   on every instruction set at hand, with one thread, two, and `threads`;
//   with weights packed (as at load, from symbolic facts) and raw;
//   with the data of inputs known to infer and select, and unknown;
//   with inputs at odd addresses where the operator says that it reads bytewise;
//   with every alias it declares taken;
// always in scratch of exactly the declared size, with pages behind inputs, outputs, scratch and packed
// weights that nobody may touch; and infers it on symbolic dimensions. On one instruction set all results
// must be the same bits as `expected`, up to rounding: failures are gtest's. Returns what each instruction
// set made.
std::vector<Outcome> run_bench(const Node& node, std::span<const TensorView> inputs,
                               std::span<const TensorView> expected, int threads);

}  // namespace plimsoll
