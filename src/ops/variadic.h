// Operators that fold a function of two over any number of inputs: Min, Max, Sum, Mean.
#pragma once

#include "kernels/copy.h"
#include "ops/elementwise.h"

namespace plimsoll {

void infer_variadic(InferContext& c, TypeSet types = kNumericTypes);
void alias_variadic(AliasContext& c);

// The output after the first two inputs, then with each of the others.
template <typename F>
void run_variadic(const RunContext& c, kernels::BinaryKind kind, F f) {
  const TensorView& y = c.outputs[0];
  if (c.inputs.size() == 1) {
    kernels::copy_bytes(y.data, c.inputs[0].data, y.bytes());
    return;
  }
  for (size_t i = 1; i < c.inputs.size(); ++i) {
    const TensorView& a = i == 1 ? c.inputs[0] : y;
    const TensorView& b = c.inputs[i];
    const kernels::Broadcast plan(y.dims, {a.dims, b.dims});
    visit_numeric(y.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) {
        broadcast_loop(plan, c.threads, a.as<T>(), b.as<T>(), y.as<T>(), f);
      } else {
        plan.for_each(c.threads, [&](const kernels::BroadcastBlock& block) {
          kernels::binary(kind, block, a.as<T>(), b.as<T>(), y.as<T>());
        });
      }
    });
  }
}

// Min and Max: inputs that equal the output share its gradient.
void gradient_extreme(GradientContext& c);

// Sum and Mean. The half types are added in float, in scratch.
void infer_sum(InferContext& c);
const void* select_sum(SelectContext& c);
template <bool kMean>
void run_sum(const RunContext& c);

void gradient_sum(GradientContext& c, bool mean);
template <bool kMean>
void gradient_sum(GradientContext& c) {
  gradient_sum(c, kMean);
}

template <bool kMean>
constexpr OpDef sum_operator(std::string_view name) {
  return {.name = name,
          .inputs = {1, kAnyNumber},
          .attrs = unary_attrs,
          .infer = infer_sum,
          .alias = alias_variadic,
          .select = select_sum,
          .run = run_sum<kMean>,
          .cost = cost_elementwise,
          .layout = layout_broadcasting,
          .region = region_broadcasting,
          .gradient = gradient_sum<kMean>};
}

}  // namespace plimsoll
