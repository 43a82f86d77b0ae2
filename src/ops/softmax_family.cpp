#include "ops/softmax_family.h"

#include <algorithm>

#include "graph/gradient.h"
#include "kernels/softmax.h"
#include "kernels/storage.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

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

constexpr int64_t kTaskElements = 4096;
constexpr int64_t kStrip = 64;  // columns at a time

int64_t max(int64_t a, int64_t b) {
  return std::max(a, b);
}

// In 16 bits a task's elements are widened, so that they are rounded once; in elements of float.
template <typename Size>
Size widened_elements(Size count, bool in_rows) {
  return in_rows ? max(count, Size(kTaskElements)) : count * Size(kStrip);
}

void softmax_rows(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols) {
  kernels::softmax_rows_f32(logarithm, x, y, rows, cols);
}
void softmax_rows(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols) {
  kernels::softmax_rows_f64(logarithm, x, y, rows, cols);
}
void softmax_columns(bool logarithm, const float* x, float* y, int64_t rows, int64_t cols, int64_t stride) {
  kernels::softmax_columns_f32(logarithm, x, y, rows, cols, stride);
}
void softmax_columns(bool logarithm, const double* x, double* y, int64_t rows, int64_t cols, int64_t stride) {
  kernels::softmax_columns_f64(logarithm, x, y, rows, cols, stride);
}

template <typename T>
void softmax_some_rows(bool logarithm, const T* x, T* y, int64_t rows, int64_t cols, float* wide) {
  if constexpr (kernels::kIsHalf<T>) {
    kernels::widen(x, wide, rows * cols);
    softmax_rows(logarithm, wide, wide, rows, cols);
    kernels::narrow(wide, y, rows * cols);
  } else {
    softmax_rows(logarithm, x, y, rows, cols);
  }
}

template <typename T>
void softmax_strip(bool logarithm, const T* x, T* y, int64_t rows, int64_t cols, int64_t stride,
                   float* wide) {
  if constexpr (kernels::kIsHalf<T>) {
    for (int64_t r = 0; r < rows; ++r) kernels::widen(x + r * stride, wide + r * kStrip, cols);
    softmax_columns(logarithm, wide, wide, rows, cols, kStrip);
    for (int64_t r = 0; r < rows; ++r) kernels::narrow(wide + r * kStrip, y + r * stride, cols);
  } else {
    softmax_columns(logarithm, x, y, rows, cols, stride);
  }
}

template <typename T>
void softmax_all(const RunContext& c, bool logarithm, const SoftmaxLines& s, int threads) {
  const T* x = c.inputs[0].as<T>();
  T* y = c.outputs[0].as<T>();
  const bool in_rows = s.inner == 1;
  const int64_t rows = std::max<int64_t>(1, kTaskElements / s.count);
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  const int64_t tasks = in_rows ? (s.outer + rows - 1) / rows : s.outer * strips;
  const int64_t workers = std::min<int64_t>(threads, tasks);
  kernels::parallel_for(threads, workers, [&](int64_t worker) {
    float* wide = nullptr;
    if (kernels::kIsHalf<T>) wide = c.scratch_as<float>(0) + worker * widened_elements(s.count, in_rows);
    for (int64_t task = tasks * worker / workers; task < tasks * (worker + 1) / workers; ++task) {
      if (in_rows) {
        const int64_t start = task * rows;
        softmax_some_rows(logarithm, x + start * s.count, y + start * s.count,
                          std::min(rows, s.outer - start), s.count, wide);
      } else {
        const int64_t col = task % strips * kStrip;
        const int64_t offset = task / strips * s.count * s.inner + col;
        softmax_strip(logarithm, x + offset, y + offset, s.count, std::min(kStrip, s.inner - col), s.inner,
                      wide);
      }
    }
  });
}

}  // namespace

const void* softmax_attrs(AttrContext& c) {
  SoftmaxAttrs* attrs = c.make<SoftmaxAttrs>();
  attrs->flattens = c.opset() < 13;
  attrs->axis = c.integer("axis", attrs->flattens ? 1 : -1);
  return attrs;
}

void gradient_softmax(GradientContext& c, bool logarithm) {
  const SoftmaxAttrs& attrs = c.attrs<SoftmaxAttrs>();
  c.set(0, c.own_op("SoftmaxGradient", {c.out(0), c.gradient()},
                    c.attributes()
                        .set("axis", attrs.axis)
                        .set("flattens", int64_t{attrs.flattens})
                        .set("logarithm", int64_t{logarithm})));
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

const void* select_softmax(SelectContext& c) {
  const SoftmaxAttrs& attrs = c.attrs<SoftmaxAttrs>();
  if (!c.ranked(0) || element_bits(c.type(0)) != 16) return nullptr;
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
  Dim count = 1, inner = 1;
  for (int64_t i = std::max<int64_t>(axis, 0); i < rank; ++i)
    (i == axis || attrs.flattens ? count : inner) =
        (i == axis || attrs.flattens ? count : inner) * c.dims(0)[static_cast<size_t>(i)];
  const Dim wide = inner == Dim(1)       ? widened_elements(count, true)
                   : inner.is_constant() ? widened_elements(count, false)
                                         : widened_elements(count, true) + widened_elements(count, false);
  c.scratch(wide * Dim(int64_t{sizeof(float)} * c.threads));
  return nullptr;
}

void run_softmax(const RunContext& c, bool logarithm) {
  const SoftmaxLines s = softmax_lines(c);
  if (s.outer * s.count * s.inner == 0) return;
  const int threads = s.outer * s.count * s.inner < 2 * kTaskElements ? 1 : c.threads;
  visit_float(c.inputs[0].type,
              [&](auto tag) { softmax_all<typename decltype(tag)::type>(c, logarithm, s, threads); });
}

}  // namespace plimsoll
