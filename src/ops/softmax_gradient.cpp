// SoftmaxGradient(Y, dY): the gradient of Softmax, or with `logarithm` of LogSoftmax, from its output.
#include "kernels/softmax_gradient.h"

#include <algorithm>

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/softmax_family.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<SoftmaxAttrs>();
  a->axis = c.integer("axis", -1);
  a->flattens = c.integer("flattens", 0) != 0;
  a->logarithm = c.integer("logarithm", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_same_type(0, 1);
  expect_same_dims(c, 0, 1);
  infer_softmax(c);
}

void alias(AliasContext& c) {
  c.overwrite(0);
  c.overwrite(1);
}

template <typename T>
void differentiate(const RunContext& c, const SoftmaxLines& s) {
  constexpr int64_t kTaskElements = 8192, kStrip = 64;
  const bool logarithm = c.attrs<SoftmaxAttrs>().logarithm;
  const T *y = c.inputs[0].as<T>(), *dy = c.inputs[1].as<T>();
  T* dx = c.outputs[0].as<T>();
  const int threads = s.outer * s.count * s.inner < 2 * kTaskElements ? 1 : c.threads;
  if (s.inner == 1) {
    const int64_t rows = std::max<int64_t>(1, kTaskElements / s.count);
    return kernels::parallel_for(threads, ceil_div(s.outer, rows), [&](int64_t task) {
      const int64_t at = task * rows * s.count;
      kernels::softmax_gradient_rows(logarithm, y + at, dy + at, dx + at,
                                     std::min(rows, s.outer - task * rows), s.count);
    });
  }
  const int64_t strips = ceil_div(s.inner, kStrip);
  kernels::parallel_for(threads, s.outer * strips, [&](int64_t task) {
    const int64_t col = task % strips * kStrip, at = task / strips * s.count * s.inner + col;
    kernels::softmax_gradient_columns(logarithm, y + at, dy + at, dx + at, s.count,
                                      std::min(kStrip, s.inner - col), s.inner);
  });
}

void run(const RunContext& c) {
  const SoftmaxLines s = softmax_lines(c);
  if (s.outer * s.count * s.inner == 0) return;
  visit_float(c.inputs[0].type, [&](auto tag) { differentiate<typename decltype(tag)::type>(c, s); });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 4;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void layout(LayoutContext& c) {
  layout_softmax(c);
  if (c.layout.choice == LayoutChoice::kEither) c.make_port(1);
}

}  // namespace

extern const OpDef op_softmax_gradient = {
    .domain = kPlimsollDomain,
    .name = "SoftmaxGradient",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .layout = layout,
};

}  // namespace plimsoll
