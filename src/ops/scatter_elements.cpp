#include "ops/scatter_elements.h"
#include "graph/gradient.h"

#include "ops/checked_index.h"
#include "ops/scatter_reduction.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::kNone;
};

void check_shapes(InferContext& c) {
  if (c.rank(1) != c.rank(0) || c.rank(2) != c.rank(0))
    c.reject("ranks differ: data {}, indices {}, updates {}", c.rank(0), c.rank(1), c.rank(2));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim want = unify(c, c.dims(1)[i], c.dims(2)[i]), have = c.dims(0)[i];
    if (i != axis && have.is_constant() && want.is_constant() && want.value() > have.value())
      c.reject("indices of shape {} exceed data of shape {}", to_string(c.dims(1)), to_string(c.dims(0)));
  }
}

}  // namespace

const void* scatter_elements_attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  a->reduction = read_scatter_reduction(c);
  return a;
}

void infer_scatter_elements(InferContext& c) {
  check_scatter_types(c, c.attrs<Attrs>().reduction);
  c.expect_type(1, kIndexTypes);
  c.expect_rank(0, 1, InferContext::kMaxRank);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (c.ranked(1) && c.ranked(2)) check_shapes(c);
  c.set_output(0, c.type(0), c.dims(0));
}

void alias_scatter_elements(AliasContext& c) {
  c.overwrite(0);
}

namespace {

// Where the elements of one line of indices, along the last axis, go.
struct Line {
  int64_t first;   // the element of the data at index 0, for the line's first
  int64_t size;    // of the axis
  int64_t stride;  // between two indices
  int64_t step;    // from one element of the line to the next, at the same index
};

template <typename I>
bool are_same(const I* indices, int64_t count) {
  int64_t other = 0;
  for (int64_t i = 1; i < count; ++i) other |= indices[i] != indices[0];
  return other == 0;
}

template <typename I>
void scatter_line(const RunContext& c, ScatterReduction reduction, const Line& line, const I* indices,
                  const std::byte* updates, int64_t count) {
  const TensorView& out = c.outputs[0];
  const auto width = static_cast<int64_t>(width_of(out.type));
  const auto at = [&](int64_t i) {
    return line.first + i * line.step + checked_index(c, indices[i], line.size) * line.stride;
  };
  // What sums up rows of a table asks for one row with every element.
  if (line.step == 1 && are_same(indices, count))
    return scatter_into(reduction, out.type, out.data + at(0) * width, updates, count);
  if (reduction == ScatterReduction::kAdd && out.type == ElementType::kFloat) {
    const auto* from = reinterpret_cast<const float*>(updates);
    for (int64_t i = 0; i < count; ++i) out.as<float>()[at(i)] += from[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    scatter_into(reduction, out.type, out.data + at(i) * width, updates + i * width, 1);
}

template <typename I>
void scatter_lines(const RunContext& c, ScatterReduction reduction, size_t axis) {
  const TensorView& out = c.outputs[0];
  const TensorView& indices = c.inputs[1];
  // Behind the axis, dimensions of one element are none.
  size_t last = out.rank() - 1;
  while (last > axis && out.dims[last] == 1) --last;
  const int64_t count = indices.dims[last], total = indices.elements();
  const auto width = static_cast<int64_t>(width_of(out.type));
  Line line{0, out.dims[axis], stride_of(out.dims, axis), axis == last ? 0 : int64_t{1}};
  int64_t position[InferContext::kMaxRank] = {}, strides[InferContext::kMaxRank];
  for (size_t i = 0; i < last; ++i) strides[i] = i == axis ? 0 : stride_of(out.dims, i);
  for (int64_t n = 0; n < total; n += count) {
    scatter_line(c, reduction, line, indices.as<I>() + n, c.inputs[2].data + n * width, count);
    for (size_t i = last; i-- > 0;) {
      line.first += strides[i];
      if (++position[i] < indices.dims[i]) break;
      line.first -= strides[i] * indices.dims[i];
      position[i] = 0;
    }
  }
}

}  // namespace

void run_scatter_elements(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  kernels::copy_bytes(out.data, c.inputs[0].data, out.bytes());
  const auto rank = static_cast<int64_t>(out.rank());
  const int64_t signed_axis = c.attrs<Attrs>().axis;
  const auto axis = static_cast<size_t>(signed_axis < 0 ? signed_axis + rank : signed_axis);
  const ScatterReduction reduction = c.attrs<Attrs>().reduction;
  c.inputs[1].type == ElementType::kInt32 ? scatter_lines<int32_t>(c, reduction, axis)
                                          : scatter_lines<int64_t>(c, reduction, axis);
}

void gradient_scatter_elements(GradientContext& c) {
  const ScatterReduction reduction = c.attrs<Attrs>().reduction;
  const bool replaces = reduction == ScatterReduction::kNone;
  const AttributeList attributes = c.attributes().set("axis", c.attrs<Attrs>().axis);
  if (!replaces && reduction != ScatterReduction::kAdd) {
    return gradient_reduced_scatter(
        c, reduction,
        {[&](Edge* data, Edge* updates, std::string_view by) {
           return c.op("ScatterElements", {data, c.in(1), updates},
                       c.attributes().set("axis", c.attrs<Attrs>().axis).set("reduction", by));
         },
         [&](Edge* data) {
           return c.op("GatherElements", {data, c.in(1)}, attributes);
         }});
  }
  if (c.wants(0)) {
    Edge* dx = c.gradient();
    if (replaces) {
      Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(2))});
      dx = c.op("ScatterElements", {dx, c.in(1), zeros}, attributes);
    }
    c.set(0, dx);
  }
  if (c.wants(2)) c.set(2, c.op("GatherElements", {c.gradient(), c.in(1)}, attributes));
}

extern const OpDef op_scatter_elements = {
    .name = "ScatterElements",
    .inputs = {3, 3},
    .attrs = scatter_elements_attrs,
    .infer = infer_scatter_elements,
    .alias = alias_scatter_elements,
    .run = run_scatter_elements,
    .gradient = gradient_scatter_elements,
};

}  // namespace plimsoll
