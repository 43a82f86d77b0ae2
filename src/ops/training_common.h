// What the optimizers of ai.onnx.preview.training share: inputs R, T, then tensors, gradients and states of
// all tensors; outputs are the new tensors and states.
#pragma once

#include <algorithm>

#include "graph/op_def.h"
#include "kernels/parallel.h"

namespace plimsoll {

inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";
inline constexpr size_t kMaxTrainingStates = 2;

// Throws if input i is known not to be one element, of whichever rank.
void expect_one(const InferContext& c, size_t i);
void infer_training(InferContext& c, size_t states);
void alias_training(AliasContext& c, size_t states);
double learning_rate(const RunContext& c);
int64_t update_count(const RunContext& c);

// One tensor with its gradient and states; results take the place of what they come from, if they may.
template <typename T>
struct TrainingTensor {
  const T *x, *gradient, *state[kMaxTrainingStates];
  T *x_new, *state_new[kMaxTrainingStates];
};

// Calls step(tensor, i) for every element i of every tensor. It reads element i of all before it writes any.
template <typename F>
void run_training(const RunContext& c, size_t states, F step) {
  const size_t count = (c.inputs.size() - 2) / (2 + states);
  const auto run_typed = [&](auto tag, size_t k) {
    using T = typename decltype(tag)::type;
    TrainingTensor<T> t{};
    t.x = c.inputs[2 + k].as<T>(), t.gradient = c.inputs[2 + count + k].as<T>();
    t.x_new = c.outputs[k].as<T>();
    for (size_t s = 0; s < states; ++s) {
      t.state[s] = c.inputs[2 + (2 + s) * count + k].as<T>();
      t.state_new[s] = c.outputs[(1 + s) * count + k].as<T>();
    }
    constexpr int64_t kChunk = 8192;
    const int64_t elements = c.outputs[k].elements();
    kernels::parallel_for(elements > 2 * kChunk ? c.threads : 1, (elements + kChunk - 1) / kChunk,
                          [&](int64_t chunk) {
                            const int64_t end = std::min(elements, (chunk + 1) * kChunk);
                            for (int64_t i = chunk * kChunk; i < end; ++i) step(t, i);
                          });
  };
  for (size_t k = 0; k < count; ++k) {
    if (c.inputs[2 + k].type == ElementType::kDouble) {
      run_typed(TypeTag<double>{}, k);
    } else {
      run_typed(TypeTag<float>{}, k);
    }
  }
}

}  // namespace plimsoll
