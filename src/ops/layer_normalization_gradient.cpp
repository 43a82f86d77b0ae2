// LayerNormalizationGradient(X, dY, scale) -> dX, dscale, dbias: of LayerNormalization, or, if not
// `centered`, of RMSNormalization. The moments are computed anew. The scale has the shape of the normalized
// dimensions; it may be absent, then it is 1.
#include <algorithm>

#include "kernels/norm_gradient.h"
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/row_norm_gradient.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGradient = 1, kScale = 2;
constexpr int64_t kParts = 16;  // of the sums over rows: their number does not depend on the threads

const void* attrs(AttrContext& c) {
  auto* a = c.make<RowNorm>();
  a->axis = c.integer("axis", -1);
  a->epsilon = c.real("epsilon", 1e-5f);
  a->centered = c.integer("centered", 1) != 0;
  return a;
}

size_t first_axis(const RowNorm& a, size_t rank) {
  return static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(rank) : a.axis);
}

void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  expect_same_dims(c, kX, kGradient);
  set_output_like(c, 0, c.type(kX), kX);
  if (!c.ranked(kX)) {
    for (size_t i = 1; i < 3; ++i) c.set_unranked_output(i, c.type(kX));
    return;
  }
  const auto axis = static_cast<size_t>(c.axis(c.attrs<RowNorm>().axis, c.rank(kX)));
  const std::span<const Dim> normalized = c.dims(kX).subspan(axis);
  if (c.has_input(kScale)) {
    c.expect_same_type(kX, kScale);
    const Dim cols = product(normalized);
    if (c.ranked(kScale) && cols.is_constant() && product(c.dims(kScale)).is_constant() &&
        !(product(c.dims(kScale)) == cols))
      c.reject("scale: expected {} elements, found shape {}", cols.value(), to_string(c.dims(kScale)));
  }
  for (size_t i = 1; i < 3; ++i) c.set_output(i, c.type(kX), normalized);
}

void alias(AliasContext& c) {
  c.overwrite(kX);
  c.overwrite(kGradient);
}

// Sums of the parameters' gradients, part by part.
const void* select(SelectContext& c) {
  if (!c.ranked(kX)) return nullptr;
  const Dim cols = product(c.dims(kX).subspan(first_axis(c.attrs<RowNorm>(), c.rank(kX))));
  const int64_t width = c.type(kX) == ElementType::kDouble ? sizeof(double) : sizeof(float);
  if (c.has_output(1) || c.has_output(2)) c.scratch(cols * Dim(2 * kParts * width));
  return nullptr;
}

template <typename T>
void differentiate(const RunContext& c, int64_t rows, int64_t cols) {
  using W = kernels::LaneOf<T>;
  const RowNorm& a = c.attrs<RowNorm>();
  const bool sums = c.has_output(1) || c.has_output(2);
  W* scratch = reinterpret_cast<W*>(c.scratch);
  const int64_t parts = std::min(kParts, rows);
  kernels::parallel_for(rows * cols < 16384 ? 1 : c.threads, parts, [&](int64_t part) {
    const int64_t begin = rows * part / parts, end = rows * (part + 1) / parts, at = begin * cols;
    kernels::RowNormGradient<T> job;
    job.x = c.inputs[kX].as<T>() + at, job.dy = c.inputs[kGradient].as<T>() + at;
    job.scale = c.has_input(kScale) ? c.inputs[kScale].as<T>() : nullptr;
    job.dx = c.has_output(0) ? c.outputs[0].as<T>() + at : nullptr;
    if (sums) {
      job.dscale = scratch + 2 * part * cols, job.dbias = job.dscale + cols;
      std::fill_n(job.dscale, 2 * cols, W{0});
    }
    job.rows = end - begin, job.cols = cols, job.epsilon = a.epsilon, job.centered = a.centered;
    kernels::row_norm_gradient(job);
  });
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has_output(i)) continue;
    for (int64_t k = 0; k < cols; ++k) {
      double sum = 0;
      for (int64_t part = 0; part < parts; ++part)
        sum += double{scratch[(2 * part + static_cast<int64_t>(i) - 1) * cols + k]};
      c.outputs[i].as<T>()[k] = narrowed<T>(sum);
    }
  }
}

void run(const RunContext& c) {
  const std::span<const int64_t> dims = c.inputs[kX].dims;
  const size_t axis = first_axis(c.attrs<RowNorm>(), dims.size());
  int64_t rows = 1, cols = 1;
  for (size_t i = 0; i < dims.size(); ++i) (i < axis ? rows : cols) *= dims[i];
  visit_float(c.inputs[kX].type,
              [&](auto tag) { differentiate<typename decltype(tag)::type>(c, rows, cols); });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 16;
  return {checked_mul(kOperationsPerElement, product(c.dims(kX)).value()), tensor_bytes(c)};
}

AttributeList attributes_of(const GradientContext& c, const RowNorm& norm) {
  return c.attributes()
      .set("axis", norm.axis)
      .set("epsilon", norm.epsilon)
      .set("centered", int64_t{norm.centered});
}

bool has_normalized_shape(const GradientContext& c, size_t first) {
  const std::span<const Dim> cols = c.dims(0).subspan(first), scale = c.dims(1);
  return c.type(0) == c.type(1) && std::equal(cols.begin(), cols.end(), scale.begin(), scale.end());
}

}  // namespace

Edge* row_norm_gradient(const GradientContext& c, Edge* x, Edge* dy, const RowNorm& norm) {
  return c.own_op("LayerNormalizationGradient", {x, dy}, attributes_of(c, norm));
}

Edge* normalized_rows(const GradientContext& c, Edge* x, const RowNorm& norm) {
  return c.op(norm.centered ? "LayerNormalization" : "RMSNormalization",
              {x, c.op("Reshape", {c.scalar(x->facts.type.type, 1), c.build.integers({1})})},
              c.attributes().set("axis", norm.axis).set("epsilon", norm.epsilon));
}

void gradient_row_norm(GradientContext& c, const RowNorm& norm) {
  Edge* dy = c.gradient();
  if (dy == nullptr) return;
  if (!c.ranked(0) || !c.ranked(1)) c.reject("its gradient needs the ranks of its inputs");
  if (has_normalized_shape(c, first_axis(norm, c.rank(0)))) {
    Edge* const inputs[] = {c.in(0), dy, c.in(1)};
    const bool has_bias = c.has_input(2);
    const Node* node = c.build.emit(kPlimsollDomain, "LayerNormalizationGradient", inputs,
                                    attributes_of(c, norm).list(), has_bias ? 3 : 2);
    c.set(0, node->outputs[0]);
    c.set(1, node->outputs[1]);
    if (has_bias) c.set(2, c.op("Reshape", {node->outputs[2], c.shape_of(c.in(2))}));
    return;
  }
  // A scale of another shape is a factor behind the normalization.
  Edge* x = c.in(0);
  const bool casts = c.type(0) != c.type(1);
  Edge* scaled = c.op("Mul", {dy, c.in(1)});
  if (c.wants(0)) c.set(0, row_norm_gradient(c, x, casts ? c.op("CastLike", {scaled, x}) : scaled, norm));
  if (c.wants(1)) {
    Edge* normal = normalized_rows(c, x, norm);
    if (casts) normal = c.op("CastLike", {normal, c.in(1)});
    c.set_broadcast(1, c.op("Mul", {dy, normal}));
  }
  if (c.wants(2)) c.set_broadcast(2, dy);
}

void gradient_grouped_norm(GradientContext& c, int64_t groups, int64_t parameters, float epsilon) {
  const auto view = [&](Edge* edge, int64_t middle) {
    return c.op("Reshape", {edge, c.build.integers({0, middle, -1})});
  };
  const RowNorm norm{-1, epsilon, true};
  Edge* x = view(c.in(0), groups);
  Edge* dy = view(c.gradient(), parameters);
  Edge* sums = c.build.integers({0, 2});
  const AttributeList drops = c.attributes().set("keepdims", int64_t{0});
  if (c.wants(0)) {
    Edge* scaled = c.op("Mul", {dy, c.op("Unsqueeze", {c.in(1), c.build.integers({-1})})});
    if (parameters != groups) scaled = view(scaled, groups);
    c.set(0, c.op("Reshape", {row_norm_gradient(c, x, scaled, norm), c.shape_of(c.in(0))}));
  }
  if (c.wants(1)) {
    Edge* normal = normalized_rows(c, x, norm);
    if (parameters != groups) normal = c.op("Reshape", {normal, c.shape_of(dy)});
    c.set(1, c.op("ReduceSum", {c.op("Mul", {dy, normal}), sums}, drops));
  }
  if (c.wants(2)) c.set(2, c.op("ReduceSum", {dy, sums}, drops));
}

extern const OpDef op_layer_normalization_gradient = {
    .domain = kPlimsollDomain,
    .name = "LayerNormalizationGradient",
    .inputs = {2, 3},
    .outputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
