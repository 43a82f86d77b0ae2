#include "ops/softmax_family.h"

#include <cmath>

#include "kernels/softmax.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

struct SoftmaxAttrs {
  int64_t axis = -1;
  bool flattens = false;  // before opset 13: over all dimensions from the axis on
};

SoftmaxLines split(const SoftmaxAttrs& attrs, std::span<const int64_t> dims) {
  SoftmaxLines s;
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)];
    if (i < axis) {
      s.outer *= dim;
    } else if (i == axis || attrs.flattens) {
      s.count *= dim;
    } else {
      s.inner *= dim;
    }
  }
  return s;
}

template <typename T>
void softmax_line(bool logarithm, const T* x, T* y, int64_t count, int64_t stride) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, static_cast<double>(load_element(x[i * stride])));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(load_element(x[i * stride])) - largest);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < count; ++i) {
    const double shifted = static_cast<double>(load_element(x[i * stride])) - largest;
    y[i * stride] = T(static_cast<ComputeType<T>>(logarithm ? shifted - log_sum : std::exp(shifted) / sum));
  }
}

constexpr int64_t kTaskElements = 4096;

void softmax_f32(const RunContext& c, bool logarithm, const SoftmaxLines& s, int threads) {
  const float* x = c.inputs[0].as<float>();
  float* y = c.outputs[0].as<float>();
  if (s.inner == 1) {
    const int64_t rows = std::max<int64_t>(1, kTaskElements / s.count);
    return kernels::parallel_for(threads, (s.outer + rows - 1) / rows, [&](int64_t task) {
      const int64_t start = task * rows;
      kernels::softmax_rows_f32(logarithm, x + start * s.count, y + start * s.count,
                                std::min(rows, s.outer - start), s.count);
    });
  }
  constexpr int64_t kStrip = 64;
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  kernels::parallel_for(threads, s.outer * strips, [&](int64_t task) {
    const int64_t col = task % strips * kStrip;
    const int64_t offset = task / strips * s.count * s.inner + col;
    kernels::softmax_columns_f32(logarithm, x + offset, y + offset, s.count, std::min(kStrip, s.inner - col),
                                 s.inner);
  });
}

}  // namespace

const void* softmax_attrs(AttrContext& c) {
  SoftmaxAttrs* attrs = c.make<SoftmaxAttrs>();
  attrs->flattens = c.opset() < 13;
  attrs->axis = c.integer("axis", attrs->flattens ? 1 : -1);
  return attrs;
}

void infer_softmax(InferContext& c) {
  infer_float_unary(c);
  const SoftmaxAttrs& attrs = c.attrs<SoftmaxAttrs>();
  if (!c.ranked(0)) return;
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (attrs.flattens && attrs.axis == rank) return;  // rows of one element
  if (rank > 0 || (attrs.axis != 0 && attrs.axis != -1)) c.axis(attrs.axis, c.rank(0));
}

void alias_softmax(AliasContext& c) {
  c.overwrite(0);
}

Cost cost_softmax(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 20;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void layout_softmax(LayoutContext& c) {
  const SoftmaxAttrs& attrs = c.attrs<SoftmaxAttrs>();
  if (!attrs.flattens) layout_axis_attribute(c, attrs.axis);
}

void region_softmax(RegionContext& c) {
  const SoftmaxAttrs& attrs = c.attrs<SoftmaxAttrs>();
  const size_t rank = c.rank(0);
  if (rank == 0) return c.whole();
  const auto axis =
      static_cast<size_t>(attrs.axis < 0 ? attrs.axis + static_cast<int64_t>(rank) : attrs.axis);
  region_along(c, axis, attrs.flattens ? rank : axis + 1);
}

SoftmaxLines softmax_lines(const RunContext& c) {
  return split(c.attrs<SoftmaxAttrs>(), c.inputs[0].dims);
}

void run_softmax(const RunContext& c, bool logarithm) {
  const SoftmaxLines s = softmax_lines(c);
  if (s.outer * s.count * s.inner == 0) return;
  const int threads = s.outer * s.count * s.inner < 2 * kTaskElements ? 1 : c.threads;
  if (c.inputs[0].type == ElementType::kFloat) return softmax_f32(c, logarithm, s, threads);
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(threads, s.outer * s.inner, [&](int64_t line) {
      const int64_t offset = line / s.inner * s.count * s.inner + line % s.inner;
      softmax_line(logarithm, c.inputs[0].as<T>() + offset, c.outputs[0].as<T>() + offset, s.count, s.inner);
    });
  });
}

}  // namespace plimsoll
