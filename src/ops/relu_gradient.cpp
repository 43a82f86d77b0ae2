// ReluGradient(Y, dY): dY where Relu's output is positive, else 0. One pass in place of a comparison and a
// choice, the most frequent of all gradients.
#include <algorithm>

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  expect_same_dims(c, 0, 1);
  set_output_like(c, 0, c.type(0), 1);
}

void alias(AliasContext& c) {
  c.overwrite(1);
  c.overwrite(0);
}

template <typename T>
void choose(const T* y, const T* dy, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = load_element(y[i]) > 0 ? dy[i] : T{};
}

void run(const RunContext& c) {
  constexpr int64_t kChunk = 32768;
  const int64_t count = c.outputs[0].elements();
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *y = c.inputs[0].as<T>(), *dy = c.inputs[1].as<T>();
    T* dx = c.outputs[0].as<T>();
    kernels::parallel_for(c.threads, ceil_div(count, kChunk), [&](int64_t chunk) {
      const int64_t at = chunk * kChunk;
      choose(y + at, dy + at, dx + at, std::min(kChunk, count - at));
    });
  });
}

void layout(LayoutContext& c) {
  c.either({0, 1});
}

}  // namespace

extern const OpDef op_relu_gradient = {
    .domain = kPlimsollDomain,
    .name = "ReluGradient",
    .inputs = {2, 2},
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout,
};

}  // namespace plimsoll
