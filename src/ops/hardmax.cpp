#include "ops/elementwise.h"
#include "ops/softmax_family.h"

namespace plimsoll {
namespace {

// 1 at the first of the largest, of which a NaN is one, and 0 elsewhere.
template <typename T>
void hardmax_line(const T* x, T* y, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    const auto largest = load_element(x[best * stride]), value = load_element(x[i * stride]);
    if (largest != largest) break;
    if (value > largest || value != value) best = i;
  }
  for (int64_t i = 0; i < count; ++i) y[i * stride] = T(i == best ? 1.0f : 0.0f);
}

void run(const RunContext& c) {
  const SoftmaxLines s = softmax_lines(c);
  if (s.outer * s.count * s.inner == 0) return;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(
        s.outer * s.count * s.inner < 32768 ? 1 : c.threads, s.outer * s.inner, [&](int64_t line) {
          const int64_t offset = line / s.inner * s.count * s.inner + line % s.inner;
          hardmax_line(c.inputs[0].as<T>() + offset, c.outputs[0].as<T>() + offset, s.count, s.inner);
        });
  });
}

}  // namespace

extern const OpDef op_hardmax = {
    .name = "Hardmax",
    .attrs = softmax_attrs,
    .infer = infer_softmax,
    .alias = alias_softmax,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_softmax,
    .region = region_softmax,
};

}  // namespace plimsoll
