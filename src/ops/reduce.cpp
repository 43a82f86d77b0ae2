#include "ops/reduce.h"

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

constexpr size_t kMaxRank = 32;

// Which dimensions go. Axes may be negative and may repeat.
struct Reduced {
  bool dims[kMaxRank] = {};
  bool none = false;  // every element is a sum of its own
};

Reduced reduced_dims(const ReduceAttrs& attrs, std::span<const int64_t> axes, size_t rank) {
  Reduced result;
  result.none = axes.empty() && attrs.empty_means_none;
  for (size_t i = 0; i < rank; ++i) result.dims[i] = axes.empty() && !result.none;
  for (int64_t axis : axes) result.dims[axis < 0 ? axis + static_cast<int64_t>(rank) : axis] = true;
  return result;
}

}  // namespace

template <int kAxesInput>
const void* reduce_attrs(AttrContext& c) {
  ReduceAttrs* attrs = c.make<ReduceAttrs>();
  attrs->keeps_dims = c.integer("keepdims", 1) != 0;
  if (c.opset() < kAxesInput) {
    attrs->axes = c.integers("axes");
    if (c.node().inputs.size() > 1) c.reject("expected 1 input (opset {}), found 2", c.opset());
  } else {
    attrs->empty_means_none = c.integer("noop_with_empty_axes", 0) != 0;
  }
  return attrs;
}
template const void* reduce_attrs<13>(AttrContext& c);
template const void* reduce_attrs<18>(AttrContext& c);

// ---- inference --------------------------------------------------------------------------------------

namespace {

// The axes are not known: their number may be.
void set_unknown_output(InferContext& c, bool keeps_dims) {
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  size_t rank = c.rank(0);
  if (!keeps_dims) {
    if (!c.ranked(1) || c.rank(1) != 1 || !c.dims(1)[0].is_constant())
      return c.set_unranked_output(0, c.type(0));
    const int64_t count = c.dims(1)[0].value();
    if (count == 0 || count > static_cast<int64_t>(rank)) return c.set_unranked_output(0, c.type(0));
    rank -= static_cast<size_t>(count);
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(c.unknown(""));
  c.set_output(0, c.type(0), dims);
}

// Sums and products of sizes.
void propagate_reduction(InferContext& c, Reduction kind) {
  if (c.rank(0) != 1 || !c.has_output(0)) return;
  const auto values = c.values(0);
  if (!values || values->empty()) return;
  try {
    Dim result = (*values)[0];
    for (Dim value : values->subspan(1)) {
      switch (kind) {
        case Reduction::kSum:
          result = result + value;
          break;
        case Reduction::kProd:
          result = result * value;
          break;
        case Reduction::kMax:
          result = max(result, value);
          break;
        case Reduction::kMin:
          result = min(result, value);
          break;
        default:
          return;
      }
    }
    const bool narrow = element_bits(c.type(0)) < 64;
    if (narrow && result.is_constant() && result.value() != static_cast<int32_t>(result.value())) return;
    c.set_values(0, std::span<const Dim>(&result, 1));
  } catch (const Error&) {
    return;  // overflows; at run time the elements wrap
  }
}

TypeSet allowed_types(Reduction kind) {
  const bool orders = kind == Reduction::kMax || kind == Reduction::kMin;
  return orders ? kNumericTypes | kBoolType : kNumericTypes;
}

}  // namespace

void infer_reduce(InferContext& c, Reduction kind) {
  c.expect_type(0, allowed_types(kind));
  c.expect_rank(0, 0, kMaxRank);
  const ReduceAttrs& attrs = c.attrs<ReduceAttrs>();
  std::vector<int64_t> axes(attrs.axes.begin(), attrs.axes.end());
  if (c.has_input(1)) {
    c.expect_type(1, kIndexTypes);
    const auto known = c.integers(1);
    if (!known) return set_unknown_output(c, attrs.keeps_dims);
    axes = *known;
  }
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  for (int64_t axis : axes) c.axis(axis, c.rank(0));
  const Reduced reduced = reduced_dims(attrs, axes, c.rank(0));
  if (reduced.none) return set_output_like(c, 0, c.type(0), 0);
  std::vector<Dim> dims;
  for (size_t i = 0; i < c.rank(0); ++i) {
    if (!reduced.dims[i]) {
      dims.push_back(c.dims(0)[i]);
    } else if (attrs.keeps_dims) {
      dims.push_back(1);
    }
  }
  c.set_output(0, c.type(0), dims);
  if (is_integer(c.type(0))) propagate_reduction(c, kind);
}

Cost cost_reduce(const NodeContext& c) {
  return {checked_mul(2, product(c.dims(0)).value()), tensor_bytes(c)};
}

namespace {

std::optional<std::vector<int64_t>> known_axes(const NodeContext& c) {
  return attribute_or_known(c, c.attrs<ReduceAttrs>().axes, 1);
}

}  // namespace

void layout_reduce(LayoutContext& c) {
  const ReduceAttrs& attrs = c.attrs<ReduceAttrs>();
  std::optional<std::vector<int64_t>> axes = known_axes(c);
  if (!c.ranked(0) || !axes || (axes->empty() && attrs.empty_means_none)) return;
  if (axes->empty()) {
    for (size_t i = 0; i < c.rank(0); ++i) axes->push_back(static_cast<int64_t>(i));
  }
  axes = resolved_axes(axes, c.rank(0));
  if (axes) layout_removed_axes(c, *axes, attrs.keeps_dims);
}

void region_reduce(RegionContext& c) {
  const ReduceAttrs& attrs = c.attrs<ReduceAttrs>();
  const auto axes = known_axes(c);
  if (!axes) return c.whole();
  const Reduced reduced = reduced_dims(attrs, *axes, c.rank(0));
  size_t next = 0;
  for (size_t i = 0; i < c.rank(0); ++i) {
    if (!reduced.dims[i]) c.needs[0][i] = c.wanted(next);
    if (!reduced.dims[i] || attrs.keeps_dims) ++next;
  }
  c.runs_on_parts = true;
}

// ---- running ----------------------------------------------------------------------------------------

namespace {

// The input's dimensions with neighbours of one kind merged; kept and reduced ones take turns.
struct Groups {
  size_t count = 0;
  int64_t size[kMaxRank], stride[kMaxRank];
  bool reduced[kMaxRank];
  int64_t outputs = 1, elements = 1;  // results, and elements that make one of them
};

Groups group_dims(std::span<const int64_t> dims, const Reduced& reduced) {
  Groups g;
  for (size_t i = 0; i < dims.size(); ++i) {
    (reduced.dims[i] ? g.elements : g.outputs) *= dims[i];
    if (dims[i] == 1) continue;
    if (g.count > 0 && g.reduced[g.count - 1] == reduced.dims[i]) {
      g.size[g.count - 1] *= dims[i];
    } else {
      g.size[g.count] = dims[i];
      g.reduced[g.count++] = reduced.dims[i];
    }
  }
  int64_t stride = 1;
  for (size_t i = g.count; i-- > 0;) {
    g.stride[i] = stride;
    stride *= g.size[i];
  }
  return g;
}

// Element `index` of the space of the groups of one kind, as an offset into the input.
int64_t offset_of(const Groups& g, bool reduced, int64_t index) {
  int64_t offset = 0;
  for (size_t i = g.count; i-- > 0;) {
    if (g.reduced[i] != reduced) continue;
    offset += index % g.size[i] * g.stride[i];
    index /= g.size[i];
  }
  return offset;
}

// Calls f(x[offset]) for every element that makes up one result.
template <typename T, typename F>
void for_each_reduced(const Groups& g, const T* x, F f) {
  size_t inner = g.count;
  while (inner > 0 && !g.reduced[inner - 1]) --inner;
  const int64_t run = inner == 0 ? 1 : g.size[inner - 1];
  const int64_t stride = inner == 0 ? 0 : g.stride[inner - 1];
  for (int64_t start = 0; start < g.elements; start += run) {
    const T* from = x + offset_of(g, true, start);
    for (int64_t i = 0; i < run; ++i) f(from[i * stride]);
  }
}

template <typename T>
using SumType = std::conditional_t<!std::is_integral_v<T>, double,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename S>
S first_value(Reduction kind) {
  using Limits = std::numeric_limits<S>;
  if (kind == Reduction::kMax || kind == Reduction::kLogSumExp)
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (kind == Reduction::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return kind == Reduction::kProd ? 1 : 0;
}

template <typename S>
S take(Reduction kind, S sum, S x) {
  using Wrap = std::conditional_t<std::is_integral_v<S>, uint64_t, S>;
  const Wrap a = static_cast<Wrap>(sum), b = static_cast<Wrap>(x);
  switch (kind) {
    case Reduction::kMax:
    case Reduction::kLogSumExp:
      return x > sum || x != x ? x : sum;
    case Reduction::kMin:
      return x < sum || x != x ? x : sum;
    case Reduction::kProd:
      return static_cast<S>(a * b);
    case Reduction::kL1:
      return static_cast<S>(x < 0 ? a - b : a + b);
    case Reduction::kL2:
    case Reduction::kSumSquare:
      return static_cast<S>(a + b * b);
    default:
      return static_cast<S>(a + b);
  }
}

double finish(Reduction kind, double sum, int64_t elements) {
  if (kind == Reduction::kMean) return sum / static_cast<double>(elements);
  if (kind == Reduction::kL2) return std::sqrt(sum);
  if (kind == Reduction::kLogSum) return std::log(sum);
  return sum;
}

bool finishes(Reduction kind) {
  return kind == Reduction::kMean || kind == Reduction::kL2 || kind == Reduction::kLogSum;
}

template <typename T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    return cast_to_integer<T>(value);
  } else {
    return T(static_cast<ComputeType<T>>(value));
  }
}

template <typename T>
T reduce_one(Reduction kind, const Groups& g, const T* x) {
  using S = SumType<T>;
  S sum = first_value<S>(kind);
  for_each_reduced(g, x, [&](T v) { sum = take<S>(kind, sum, static_cast<S>(load_element(v))); });
  if (kind == Reduction::kLogSumExp) {
    const double largest = static_cast<double>(sum);
    if (g.elements == 0) return to_element<T>(-std::numeric_limits<double>::infinity());
    if (std::isinf(largest)) return to_element<T>(largest);
    double total = 0;
    for_each_reduced(g, x, [&](T v) { total += std::exp(static_cast<double>(load_element(v)) - largest); });
    return to_element<T>(largest + std::log(total));
  }
  if constexpr (std::is_integral_v<T>) {
    if (kind == Reduction::kMean)
      return g.elements == 0 ? T{0} : static_cast<T>(sum / static_cast<S>(g.elements));
    if (g.elements == 0 && kind == Reduction::kMax) return std::numeric_limits<T>::lowest();
    if (g.elements == 0 && kind == Reduction::kMin) return std::numeric_limits<T>::max();
    if (!finishes(kind)) return static_cast<T>(sum);
  }
  return to_element<T>(finish(kind, static_cast<double>(sum), g.elements));
}

kernels::ReduceKind kernel_kind(Reduction kind) {
  switch (kind) {
    case Reduction::kMax:
      return kernels::ReduceKind::kMax;
    case Reduction::kMin:
      return kernels::ReduceKind::kMin;
    case Reduction::kProd:
      return kernels::ReduceKind::kProduct;
    case Reduction::kL1:
      return kernels::ReduceKind::kSumAbs;
    case Reduction::kL2:
    case Reduction::kSumSquare:
      return kernels::ReduceKind::kSumSquare;
    default:
      return kernels::ReduceKind::kSum;
  }
}

constexpr int64_t kTaskElements = 16384;

int threads_for(const RunContext& c, const Groups& g) {
  return g.outputs * g.elements < 2 * kTaskElements ? 1 : c.threads;
}

// Takes the result of one part into that of another.
float join(kernels::ReduceKind kind, float a, float b) {
  switch (kind) {
    case kernels::ReduceKind::kMax:
      return take<float>(Reduction::kMax, a, b);
    case kernels::ReduceKind::kMin:
      return take<float>(Reduction::kMin, a, b);
    case kernels::ReduceKind::kProduct:
      return a * b;
    default:
      return a + b;
  }
}

constexpr int64_t kStrip = 64;              // columns, and of 16 bits rows, at a time
constexpr int64_t kWide = kStrip * kStrip;  // elements of 16 bits that are widened at a time

// sums[r] = reduction of row r.
void sum_rows(kernels::ReduceKind kind, const float* x, int64_t rows, int64_t cols, float* sums) {
  kernels::reduce_rows_f32(kind, x, rows, cols, sums);
}
void sum_rows(kernels::ReduceKind kind, const double* x, int64_t rows, int64_t cols, double* sums) {
  kernels::reduce_rows_f64(kind, x, rows, cols, sums);
}
template <typename Half>
void sum_rows(kernels::ReduceKind kind, const Half* x, int64_t rows, int64_t cols, float* sums) {
  float wide[kWide];
  const int64_t together = std::max<int64_t>(1, kWide / cols);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t count = std::min(together, rows - row);
    for (int64_t start = 0; start < cols; start += kWide) {
      const int64_t size = cols > kWide ? std::min(kWide, cols - start) : cols;
      float first = 0;
      kernels::widen(x + row * cols + start, wide, count * size);
      kernels::reduce_rows_f32(kind, wide, count, size, start == 0 ? sums + row : &first);
      if (start > 0) sums[row] = join(kind, sums[row], first);
    }
  }
}

// sums[c] = reduction of column c, of at most kStrip.
void sum_columns(kernels::ReduceKind kind, const float* x, int64_t rows, int64_t cols, int64_t stride,
                 float* sums) {
  kernels::reduce_columns_f32(kind, x, rows, cols, stride, sums);
}
void sum_columns(kernels::ReduceKind kind, const double* x, int64_t rows, int64_t cols, int64_t stride,
                 double* sums) {
  kernels::reduce_columns_f64(kind, x, rows, cols, stride, sums);
}
template <typename Half>
void sum_columns(kernels::ReduceKind kind, const Half* x, int64_t rows, int64_t cols, int64_t stride,
                 float* sums) {
  float wide[kWide], part[kStrip];
  for (int64_t row = 0; row < rows; row += kStrip) {
    const int64_t count = std::min(kStrip, rows - row);
    for (int64_t r = 0; r < count; ++r) kernels::widen(x + (row + r) * stride, wide + r * kStrip, cols);
    kernels::reduce_columns_f32(kind, wide, count, cols, kStrip, row == 0 ? sums : part);
    for (int64_t i = 0; row > 0 && i < cols; ++i) sums[i] = join(kind, sums[i], part[i]);
  }
}

// What is left to do after the sums; it is rounded once.
template <typename T, typename W>
void store_sums(Reduction kind, const Groups& g, const W* sums, int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = T(finishes(kind) ? static_cast<W>(finish(kind, double{sums[i]}, g.elements)) : sums[i]);
}

template <typename T>
void reduce_rows(const RunContext& c, Reduction kind, const Groups& g) {
  const T* x = c.inputs[0].as<T>();
  T* y = c.outputs[0].as<T>();
  constexpr int64_t kMostRows = 256;
  const int64_t rows = std::clamp<int64_t>(kTaskElements / g.elements, 1, kMostRows);
  kernels::parallel_for(threads_for(c, g), (g.outputs + rows - 1) / rows, [&](int64_t task) {
    kernels::LaneOf<T> sums[kMostRows];
    const int64_t start = task * rows;
    const int64_t count = std::min(rows, g.outputs - start);
    sum_rows(kernel_kind(kind), x + start * g.elements, count, g.elements, sums);
    store_sums(kind, g, sums, count, y + start);
  });
}

// Strips of columns, of all matrices [reduced, cols].
template <typename T>
void reduce_columns(const RunContext& c, Reduction kind, const Groups& g) {
  const T* x = c.inputs[0].as<T>();
  T* y = c.outputs[0].as<T>();
  const int64_t cols = g.size[g.count - 1];
  const int64_t strips = (cols + kStrip - 1) / kStrip;
  kernels::parallel_for(threads_for(c, g), g.outputs / cols * strips, [&](int64_t task) {
    kernels::LaneOf<T> sums[kStrip];
    const int64_t matrix = task / strips;
    const int64_t col = task % strips * kStrip;
    const int64_t count = std::min(kStrip, cols - col);
    sum_columns(kernel_kind(kind), x + matrix * g.elements * cols + col, g.elements, count, cols, sums);
    store_sums(kind, g, sums, count, y + matrix * cols + col);
  });
}

// ---- log of sums of exponentials, of floats ----

// y = exp(x - shift of its row or column); of what is not finite the shift is 0.
void exp_below(const float* x, int64_t stride, int64_t rows, int64_t cols, const float* largest, bool by_rows,
               float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols; ++i) {
      const float top = largest[by_rows ? r : i];
      y[r * cols + i] = x[r * stride + i] - (std::isfinite(top) ? top : 0.0f);
    }
  }
  kernels::unary_f32({kernels::UnaryKind::kExp}, y, y, rows * cols);
}

float finish_log_sum(float largest, double total) {
  return std::isfinite(largest) ? static_cast<float>(double{largest} + std::log(total)) : largest;
}

void log_sum_exp_rows(const float* x, int64_t rows, int64_t cols, float* y) {
  float wide[kWide], largest[kStrip], part[kStrip];
  const int64_t together = std::clamp<int64_t>(kWide / cols, 1, kStrip);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t count = std::min(together, rows - row);
    double totals[kStrip] = {};
    const float* from = x + row * cols;
    kernels::reduce_rows_f32(kernels::ReduceKind::kMax, from, count, cols, largest);
    for (int64_t start = 0; start < cols; start += kWide) {
      const int64_t size = std::min(kWide, cols - start);
      exp_below(from + start, cols, count, size, largest, true, wide);
      kernels::reduce_rows_f32(kernels::ReduceKind::kSum, wide, count, size, part);
      for (int64_t i = 0; i < count; ++i) totals[i] += double{part[i]};
    }
    for (int64_t i = 0; i < count; ++i) y[row + i] = finish_log_sum(largest[i], totals[i]);
  }
}

// Of at most kStrip columns.
void log_sum_exp_columns(const float* x, int64_t rows, int64_t cols, int64_t stride, float* y) {
  float wide[kWide], largest[kStrip], part[kStrip];
  double totals[kStrip] = {};
  kernels::reduce_columns_f32(kernels::ReduceKind::kMax, x, rows, cols, stride, largest);
  for (int64_t row = 0; row < rows; row += kStrip) {
    const int64_t count = std::min(kStrip, rows - row);
    exp_below(x + row * stride, stride, count, cols, largest, false, wide);
    kernels::reduce_columns_f32(kernels::ReduceKind::kSum, wide, count, cols, cols, part);
    for (int64_t i = 0; i < cols; ++i) totals[i] += double{part[i]};
  }
  for (int64_t i = 0; i < cols; ++i) y[i] = finish_log_sum(largest[i], totals[i]);
}

void log_sum_exp(const RunContext& c, const Groups& g, bool by_rows) {
  const float* x = c.inputs[0].as<float>();
  float* y = c.outputs[0].as<float>();
  if (by_rows) {
    const int64_t rows = std::max<int64_t>(kTaskElements / g.elements, 1);
    kernels::parallel_for(threads_for(c, g), (g.outputs + rows - 1) / rows, [&](int64_t task) {
      const int64_t start = task * rows;
      log_sum_exp_rows(x + start * g.elements, std::min(rows, g.outputs - start), g.elements, y + start);
    });
    return;
  }
  const int64_t cols = g.size[g.count - 1], strips = (cols + kStrip - 1) / kStrip;
  kernels::parallel_for(threads_for(c, g), g.outputs / cols * strips, [&](int64_t task) {
    const int64_t matrix = task / strips, col = task % strips * kStrip;
    log_sum_exp_columns(x + matrix * g.elements * cols + col, g.elements, std::min(kStrip, cols - col), cols,
                        y + matrix * cols + col);
  });
}

// True if the shape is a batch of matrices reduced along one side.
bool reduce_floats(const RunContext& c, Reduction kind, const Groups& g) {
  const bool is_log_sum_exp = kind == Reduction::kLogSumExp;
  if (is_log_sum_exp && c.inputs[0].type != ElementType::kFloat) return false;
  if (g.outputs == 0 || g.elements == 0 || g.count == 0) return false;
  const bool rows = g.reduced[g.count - 1] && g.count <= 2;
  const bool columns = !g.reduced[g.count - 1] && g.count >= 2 && g.count <= 3;
  if (!rows && !columns) return false;
  if (is_log_sum_exp) return log_sum_exp(c, g, rows), true;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return rows ? reduce_rows<T>(c, kind, g) : reduce_columns<T>(c, kind, g);
  });
  return true;
}

// Without axes only the steps besides the reduction are left. False: the loop for all types does it.
bool reduce_nothing(const RunContext& c, Reduction kind) {
  const bool is_real = is_float(c.inputs[0].type);
  switch (kind) {
    case Reduction::kL1:
    case Reduction::kL2:
      if (is_real) run_unary(c, {kernels::UnaryKind::kAbs});
      return is_real;
    case Reduction::kLogSum:
      if (is_real) run_unary(c, {kernels::UnaryKind::kLog});
      return is_real;
    case Reduction::kSumSquare:
      return false;
    default:
      kernels::copy_bytes(c.outputs[0].data, c.inputs[0].data, c.outputs[0].bytes());
      return true;
  }
}

}  // namespace

void reduce_rows(const RunContext& c, Reduction kind, int64_t rows, int64_t cols) {
  Groups g;
  g.outputs = rows, g.elements = cols;
  if (rows == 0 || cols == 0) return;
  visit_float(c.inputs[0].type, [&](auto tag) { reduce_rows<typename decltype(tag)::type>(c, kind, g); });
}

void run_reduce(const RunContext& c, Reduction kind) {
  const TensorView& x = c.inputs[0];
  const TensorView& y = c.outputs[0];
  const ReduceAttrs& attrs = c.attrs<ReduceAttrs>();
  int64_t axes[2 * kMaxRank];
  size_t count = 0;
  const auto add = [&](int64_t axis) {
    if (count == std::size(axes)) fail(ErrorCode::kNotImplemented, "{}: too many axes", c.node->label());
    axes[count++] = axis;
  };
  if (c.has_input(1)) {
    visit_integer(c.inputs[1].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < c.inputs[1].elements(); ++i) add(static_cast<int64_t>(c.inputs[1].as<T>()[i]));
    });
  } else {
    for (int64_t axis : attrs.axes) add(axis);
  }
  const Reduced reduced = reduced_dims(attrs, {axes, count}, x.rank());
  if (reduced.none && reduce_nothing(c, kind)) return;
  const Groups g = group_dims(x.dims, reduced);
  if (is_float(x.type) && reduce_floats(c, kind, g)) return;
  if (x.type == ElementType::kBool && g.elements == 0) {  // the least, or the most, that a bool can be
    std::fill_n(y.as<bool>(), y.elements(), kind == Reduction::kMin);
    return;
  }
  visit_bool_or_numeric(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(threads_for(c, g), g.outputs, [&](int64_t i) {
      y.as<T>()[i] = reduce_one(kind, g, x.as<T>() + offset_of(g, false, i));
    });
  });
}

}  // namespace plimsoll
