// What the optimizers of training share. Inputs: the parameter, its gradient, the rate (a float), the number
// of this step (an int64, from 1), the scale of the gradient (a float, may be absent), a float that must be
// finite for anything to happen (likewise), then the states. Outputs: the new parameter, the new states, each
// in the place of the old one where it may be.
#pragma once

#include <cmath>
#include <cstring>

#include "graph/op_def.h"
#include "kernels/parallel.h"
#include "kernels/update.h"

namespace plimsoll {

enum UpdateInput : size_t { kParameter, kGradientOf, kRate, kStep, kScale, kGuard, kFirstState };
inline constexpr uint32_t kOptionalUpdateInputs = 1u << kScale | 1u << kGuard;
inline constexpr TypeSet kUpdateTypes = types(ElementType::kFloat, ElementType::kDouble);

void infer_update(InferContext& c);
// Throws if there is momentum, but no input `state` for it.
void expect_state_for_momentum(const AttrContext& c, float momentum, size_t state);
void alias_update(AliasContext& c);
// `clip`: gradients are held within +-clip.
kernels::GradientChange gradient_change(const RunContext& c, double clip, double decay);
double update_rate(const RunContext& c);
double update_step(const RunContext& c);
// The decimal number that somebody wrote into a float attribute: 0.999, not 0.99900001287.
double decimal(float attribute);
// False, and the outputs are what the inputs were, if the guard is not finite. Otherwise the outputs hold the
// old values, to be changed in place.
bool begin_update(const RunContext& c);

inline constexpr int64_t kUpdateChunk = 16384;  // elements; results do not depend on the number of threads

template <typename T>
kernels::UpdateRange<T> update_range(const RunContext& c, int64_t chunk) {
  const int64_t begin = chunk * kUpdateChunk, elements = c.outputs[0].elements();
  kernels::UpdateRange<T> range;
  range.count = elements - begin < kUpdateChunk ? elements - begin : kUpdateChunk;
  range.gradient = c.inputs[kGradientOf].as<T>() + begin;
  range.weight = c.outputs[0].as<T>() + begin;
  for (size_t s = 0; s < 3; ++s)
    range.state[s] = c.has_output(1 + s) ? c.outputs[1 + s].as<T>() + begin : nullptr;
  return range;
}

// Calls f(chunk, range) for every chunk of the parameter, whichever type it has.
template <typename F>
void for_update_chunks(const RunContext& c, F f) {
  const int64_t chunks = (c.outputs[0].elements() + kUpdateChunk - 1) / kUpdateChunk;
  kernels::parallel_for(chunks > 1 ? c.threads : 1, chunks, [&](int64_t chunk) {
    if (c.outputs[0].type == ElementType::kDouble) {
      f(chunk, update_range<double>(c, chunk));
    } else {
      f(chunk, update_range<float>(c, chunk));
    }
  });
}

template <typename Update>
void run_update(const RunContext& c, const Update& how) {
  for_update_chunks(c, [&](int64_t, const auto& range) { kernels::update(how, range); });
}

}  // namespace plimsoll
