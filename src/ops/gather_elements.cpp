#include "graph/gradient.h"
#include "ops/movement.h"
#include "ops/selection_cost.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, kIndexTypes);
  c.expect_rank(0, 1, InferContext::kMaxRank);
  if (!c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  c.set_output(0, c.type(0), c.dims(1));
  if (!c.ranked(0)) return;
  if (c.rank(0) != c.rank(1)) c.reject("inputs 0 and 1: ranks {} and {} differ", c.rank(0), c.rank(1));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim have = c.dims(0)[i], want = c.dims(1)[i];
    if (i != axis && have.is_constant() && want.is_constant() && want.value() > have.value())
      c.reject("indices of shape {} exceed data of shape {}", to_string(c.dims(1)), to_string(c.dims(0)));
  }
}

void run(const RunContext& c) {
  const TensorView& data = c.inputs[0];
  const TensorView& indices = c.inputs[1];
  const size_t rank = data.rank();
  int64_t signed_axis = c.attrs<Attrs>().axis;
  if (signed_axis < 0) signed_axis += static_cast<int64_t>(rank);
  const auto axis = static_cast<size_t>(signed_axis);
  const int64_t size = data.dims[axis], stride = stride_of(data.dims, axis), count = indices.elements();
  visit_width(data.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t position[InferContext::kMaxRank] = {}, strides[InferContext::kMaxRank], base = 0;
    for (size_t i = 0; i < rank; ++i) strides[i] = i == axis ? 0 : stride_of(data.dims, i);
    for (int64_t n = 0; n < count; ++n) {
      const int64_t index = index_at(indices, n);
      if (index < -size || index >= size)
        fail(ErrorCode::kInvalidArgument, "{}: index {} is outside [{}, {})", c.node->label(), index, -size,
             size);
      c.outputs[0].as<T>()[n] = data.as<T>()[base + (index < 0 ? index + size : index) * stride];
      for (size_t i = rank; i-- > 0;) {
        base += strides[i];
        if (++position[i] < indices.dims[i]) break;
        base -= strides[i] * indices.dims[i];
        position[i] = 0;
      }
    }
  });
}

void gradient(GradientContext& c) {
  Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(0))});
  const AttributeList attributes = c.attributes().set("axis", c.attrs<Attrs>().axis).set("reduction", "add");
  c.set(0, c.op("ScatterElements", {zeros, c.in(1), c.gradient()}, attributes));
}

}  // namespace

extern const OpDef op_gather_elements = {
    .name = "GatherElements",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_selection,
    .gradient = gradient,
};

}  // namespace plimsoll
