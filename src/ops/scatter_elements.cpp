#include "ops/scatter_elements.h"
#include "graph/gradient.h"

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

void run_scatter_elements(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  const TensorView& indices = c.inputs[1];
  const size_t rank = out.rank();
  kernels::copy_bytes(out.data, c.inputs[0].data, out.bytes());
  const int64_t signed_axis = c.attrs<Attrs>().axis;
  const auto axis =
      static_cast<size_t>(signed_axis < 0 ? signed_axis + static_cast<int64_t>(rank) : signed_axis);
  const int64_t size = out.dims[axis], stride = stride_of(out.dims, axis), count = indices.elements();
  const auto width = static_cast<int64_t>(width_of(out.type));
  int64_t position[InferContext::kMaxRank] = {}, strides[InferContext::kMaxRank], base = 0;
  for (size_t i = 0; i < rank; ++i) strides[i] = i == axis ? 0 : stride_of(out.dims, i);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t index = index_at(indices, n);
    if (index < -size || index >= size)
      fail(ErrorCode::kInvalidArgument, "{}: index {} is outside [{}, {})", c.node->label(), index, -size,
           size);
    const int64_t at = base + (index < 0 ? index + size : index) * stride;
    scatter_into(c.attrs<Attrs>().reduction, out.type, out.data + at * width, c.inputs[2].data + n * width,
                 1);
    for (size_t i = rank; i-- > 0;) {
      base += strides[i];
      if (++position[i] < indices.dims[i]) break;
      base -= strides[i] * indices.dims[i];
      position[i] = 0;
    }
  }
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
