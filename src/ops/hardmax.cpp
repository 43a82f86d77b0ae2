#include <algorithm>

#include "graph/gradient.h"
#include "kernels/arg_extreme.h"
#include "ops/elementwise.h"
#include "ops/softmax_family.h"

namespace plimsoll {
namespace {

constexpr int64_t kStrip = 64;
constexpr kernels::ArgExtreme kFirstLargest{true, false};

// 1 at the first of the largest, of which a NaN is one, and 0 elsewhere: for lines that are columns of
// [count, width], their rows `stride` apart.
template <typename T>
void hardmax_strip(const T* x, T* y, int64_t count, int64_t width, int64_t stride) {
  int64_t places[kStrip];
  if (stride == 1) {
    kernels::arg_rows(kFirstLargest, x, 1, count, places);
    std::fill_n(y, count, T());
  } else {
    kernels::arg_columns(kFirstLargest, x, count, width, stride, places);
    for (int64_t i = 0; i < count; ++i) std::fill_n(y + i * stride, width, T());
  }
  for (int64_t i = 0; i < width; ++i) y[places[i] * stride + i] = T(1.0f);
}

void run(const RunContext& c) {
  const SoftmaxLines s = softmax_lines(c);
  if (s.outer * s.count * s.inner == 0) return;
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(
        s.outer * s.count * s.inner < 32768 ? 1 : c.threads, s.outer * strips, [&](int64_t task) {
          const int64_t column = task % strips * kStrip, offset = task / strips * s.count * s.inner + column;
          hardmax_strip(c.inputs[0].as<T>() + offset, c.outputs[0].as<T>() + offset, s.count,
                        std::min(kStrip, s.inner - column), s.inner);
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
    .gradient = no_gradient,
};

}  // namespace plimsoll
