#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct GridAttrs {
  bool align_corners = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<GridAttrs>();
  a->align_corners = c.integer("align_corners", 0) != 0;
  return a;
}

// Space has 2 or 3 dimensions: theta says so, or else the number of sizes.
void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_type(1, types(ElementType::kInt64));
  c.expect_rank(0, 3, 3);
  const auto length = known_length(c, 1);
  if (length && *length != 4 && *length != 5) c.reject("size: expected 4 or 5 elements, found {}", *length);
  if (!length) return c.set_unranked_output(0, c.type(0));
  const auto space = static_cast<int64_t>(*length) - 2;
  const auto size = c.values(1);
  Dim batch = size ? (*size)[0] : c.unknown("");
  if (c.ranked(0)) {
    unify(c, c.dims(0)[1], Dim(space));
    unify(c, c.dims(0)[2], Dim(space + 1));
    batch = unify(c, batch, c.dims(0)[0]);
  }
  std::vector<Dim> dims{batch};
  for (size_t i = 2; i < *length; ++i) dims.push_back(size ? (*size)[i] : c.unknown(""));
  dims.push_back(space);
  c.set_output(0, c.type(0), dims);
}

// Position i of `count` between -1 and 1; a single one between aligned corners is the middle.
double position(int64_t i, int64_t count, bool align_corners) {
  if (align_corners) return count < 2 ? 0 : -1 + 2 * static_cast<double>(i) / static_cast<double>(count - 1);
  return (2 * static_cast<double>(i) + 1) / static_cast<double>(count) - 1;
}

template <typename T>
void fill_row(const double* theta, size_t space, const double* start, bool align_corners, int64_t width,
              T* y) {
  double along[3], fixed[3];
  for (size_t d = 0; d < space; ++d) {
    const double* row = theta + d * (space + 1);
    along[d] = row[0];
    fixed[d] = row[space];
    for (size_t k = 1; k < space; ++k) fixed[d] += row[k] * start[k];
  }
  for (int64_t x = 0; x < width; ++x) {
    const double at = position(x, width, align_corners);
    for (size_t d = 0; d < space; ++d)
      y[x * static_cast<int64_t>(space) + static_cast<int64_t>(d)] = narrowed<T>(along[d] * at + fixed[d]);
  }
}

void run(const RunContext& c) {
  const TensorView& y = c.outputs[0];
  if (y.elements() == 0) return;
  const size_t space = y.rank() - 2;
  const bool align = c.attrs<GridAttrs>().align_corners;
  const int64_t width = y.dims[space], height = y.dims[space - 1], depth = space == 3 ? y.dims[1] : 1;
  visit_float(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(y.elements() < 16384 ? 1 : c.threads, y.dims[0] * depth * height, [&](int64_t row) {
      double theta[12];
      const auto numbers = static_cast<int64_t>(space * (space + 1));
      read_floats(c.inputs[0], row / (depth * height) * numbers, numbers, theta);
      const double start[3] = {0, position(row % height, height, align),
                               position(row / height % depth, depth, align)};
      fill_row(theta, space, start, align, width, y.as<T>() + row * width * static_cast<int64_t>(space));
    });
  });
}

// The grid is base * theta^T, where the base is that of the identity with a column of ones.
void gradient(GradientContext& c) {
  if (!c.gradient()->facts.type.ranked) c.reject("its gradient needs to know the dimensions of space");
  const auto space = static_cast<int64_t>(c.gradient()->facts.type.rank()) - 2;
  std::vector<float> identity(static_cast<size_t>(space * (space + 1)), 0.0f);
  for (int64_t i = 0; i < space; ++i) identity[static_cast<size_t>(i * (space + 1) + i)] = 1;
  const int64_t dims[] = {1, space, space + 1};
  Edge* theta = c.op("CastLike", {c.build.constant("identity", dims, identity), c.in(0)});
  Edge* sizes = c.op("Slice", {c.in(1), c.build.integers({1}), c.build.integers({space + 2})});
  Edge* one_grid = c.op("Concat", {c.build.integers({1}), sizes}, c.attributes().set("axis", int64_t{0}));
  Edge* base = c.op("AffineGrid", {theta, one_grid},
                    c.attributes().set("align_corners", int64_t{c.attrs<GridAttrs>().align_corners}));
  const auto rows = [&](Edge* edge) { return c.op("Reshape", {edge, c.build.integers({0, -1, space})}); };
  const int64_t pads[] = {0, 0, 0, 0, 0, 1};
  base = c.op("Pad", {rows(base), c.build.integers(pads), c.scalar(1)});
  Edge* product =
      c.own_op("FusedMatMul", {rows(c.gradient()), base}, c.attributes().set("trans_a", int64_t{1}));
  c.set(0, product);
}

}  // namespace

extern const OpDef op_affine_grid = {
    .name = "AffineGrid",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
