#include <cmath>

#include "kernels/normalize.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

struct LayerNormAttrs {
  int64_t axis = -1;
  float epsilon = 1e-5f;
};

const void* attrs(AttrContext& c) {
  LayerNormAttrs* a = c.make<LayerNormAttrs>();
  a->axis = c.integer("axis", -1);
  a->epsilon = c.real("epsilon", 1e-5f);
  const int64_t stash_type = c.integer("stash_type", 1);
  if (stash_type != 1) fail(ErrorCode::kNotImplemented, "{}: stash_type {}", c.node().label(), stash_type);
  return a;
}

// Scale and bias have an element per normalized one, or one for all.
void expect_parameter(const InferContext& c, size_t i, Dim cols) {
  c.expect_same_type(0, i);
  if (!c.ranked(i)) return;
  const Dim count = product(c.dims(i));
  if (count.is_constant() && cols.is_constant() && !(count == cols) && !(count == Dim(1)))
    c.reject("input {}: expected {} elements, found shape {}", i, cols.value(), to_string(c.dims(i)));
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  set_output_like(c, 0, c.type(0), 0);
  if (!c.ranked(0)) {
    c.set_unranked_output(1, ElementType::kFloat);
    c.set_unranked_output(2, ElementType::kFloat);
    return;
  }
  const auto axis = static_cast<size_t>(c.axis(c.attrs<LayerNormAttrs>().axis, c.rank(0)));
  const Dim cols = product(c.dims(0).subspan(axis));
  expect_parameter(c, 1, cols);
  if (c.has_input(2)) expect_parameter(c, 2, cols);
  std::vector<Dim> moments(c.dims(0).begin(), c.dims(0).end());
  for (size_t i = axis; i < moments.size(); ++i) moments[i] = 1;
  c.set_output(1, ElementType::kFloat, moments);
  c.set_output(2, ElementType::kFloat, moments);
}

void alias(AliasContext& c) {
  c.overwrite(0);  // a row is read whole before it is written
}

struct Rows {
  int64_t rows = 1, cols = 1;
  float* mean = nullptr;
  float* inverse = nullptr;
};

template <typename T>
void normalize_row(const RunContext& c, const Rows& s, int64_t row) {
  const T* x = c.inputs[0].as<T>() + row * s.cols;
  T* y = c.outputs[0].as<T>() + row * s.cols;
  const auto at = [](const T* p, int64_t i) { return static_cast<double>(load_element(p[i])); };
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < s.cols; ++i) sum += at(x, i);
  const double mean = sum / static_cast<double>(s.cols);
  for (int64_t i = 0; i < s.cols; ++i) squares += (at(x, i) - mean) * (at(x, i) - mean);
  const double inverse =
      1 / std::sqrt(squares / static_cast<double>(s.cols) + c.attrs<LayerNormAttrs>().epsilon);
  if (s.mean != nullptr) s.mean[row] = static_cast<float>(mean);
  if (s.inverse != nullptr) s.inverse[row] = static_cast<float>(inverse);
  const TensorView none;
  const TensorView& bias = c.has_input(2) ? c.inputs[2] : none;
  const int64_t scale_step = c.inputs[1].elements() == 1 ? 0 : 1;
  const int64_t bias_step = bias && bias.elements() != 1 ? 1 : 0;
  for (int64_t i = 0; i < s.cols; ++i) {
    const double shift = bias ? at(bias.as<T>(), i * bias_step) : 0;
    const double value = (at(x, i) - mean) * inverse * at(c.inputs[1].as<T>(), i * scale_step) + shift;
    y[i] = T(static_cast<ComputeType<T>>(value));
  }
}

void normalize_f32(const RunContext& c, const Rows& s, int64_t start, int64_t count) {
  const auto moment = [&](float* base) { return base == nullptr ? nullptr : base + start; };
  const float* bias = c.has_input(2) ? c.inputs[2].as<float>() : nullptr;
  kernels::layer_norm_f32(c.inputs[0].as<float>() + start * s.cols, c.inputs[1].as<float>(), bias,
                          c.outputs[0].as<float>() + start * s.cols, count, s.cols,
                          c.attrs<LayerNormAttrs>().epsilon, moment(s.mean), moment(s.inverse));
}

void run(const RunContext& c) {
  constexpr int64_t kTaskElements = 8192;
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t axis = c.attrs<LayerNormAttrs>().axis;
  Rows s;
  for (int64_t i = 0; i < rank; ++i)
    (i < (axis < 0 ? axis + rank : axis) ? s.rows : s.cols) *= dims[static_cast<size_t>(i)];
  if (c.has_output(1)) s.mean = c.outputs[1].as<float>();
  if (c.has_output(2)) s.inverse = c.outputs[2].as<float>();
  const bool whole =
      c.inputs[1].elements() == s.cols && (!c.has_input(2) || c.inputs[2].elements() == s.cols);
  const int64_t rows = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, s.cols));
  const int threads = s.rows * s.cols < 2 * kTaskElements ? 1 : c.threads;
  kernels::parallel_for(threads, (s.rows + rows - 1) / rows, [&](int64_t task) {
    const int64_t start = task * rows;
    const int64_t count = std::min(rows, s.rows - start);
    if (c.inputs[0].type == ElementType::kFloat && whole) return normalize_f32(c, s, start, count);
    visit_float(c.inputs[0].type, [&](auto tag) {
      for (int64_t r = 0; r < count; ++r) normalize_row<typename decltype(tag)::type>(c, s, start + r);
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void region(RegionContext& c) {
  const int64_t axis = c.attrs<LayerNormAttrs>().axis;
  region_along(c, static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(c.rank(0)) : axis), c.rank(0));
}

}  // namespace

extern const OpDef op_layer_normalization = {
    .name = "LayerNormalization",
    .inputs = {2, 3},
    .outputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .region = region,
};

}  // namespace plimsoll
