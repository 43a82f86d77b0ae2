#include "graph/gradient.h"
#include "ops/checked_index.h"
#include "ops/scatter_reduction.h"

namespace plimsoll {
namespace {

struct Attrs {
  ScatterReduction reduction = ScatterReduction::kNone;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->reduction = read_scatter_reduction(c);
  return a;
}

void check_shapes(InferContext& c) {
  const auto data = c.dims(0), indices = c.dims(1), updates = c.dims(2);
  const Dim depth = indices.back();
  if (!depth.is_constant()) return;
  if (depth.value() > static_cast<int64_t>(data.size()))
    c.reject("indices of shape {} do not fit data of shape {}", to_string(indices), to_string(data));
  std::vector<Dim> expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + depth.value(), data.end());
  bool same = expected.size() == updates.size();
  for (size_t i = 0; same && i < expected.size(); ++i)
    same = !expected[i].is_constant() || !updates[i].is_constant() || expected[i] == updates[i];
  if (!same) c.reject("expected updates of shape {}, found {}", to_string(expected), to_string(updates));
}

void infer(InferContext& c) {
  check_scatter_types(c, c.attrs<Attrs>().reduction);
  c.expect_type(1, types(ElementType::kInt64));
  c.expect_rank(0, 1, InferContext::kMaxRank);
  c.expect_rank(1, 1, InferContext::kMaxRank);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (c.ranked(1) && c.ranked(2)) check_shapes(c);
  c.set_output(0, c.type(0), c.dims(0));
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

void run(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  const TensorView& indices = c.inputs[1];
  kernels::copy_bytes(out.data, c.inputs[0].data, out.bytes());
  const int64_t depth = indices.dims.back();
  const int64_t tuples = count_of(indices.dims.first(indices.rank() - 1));
  const int64_t piece = count_of(out.dims.subspan(static_cast<size_t>(depth)));
  const auto width = static_cast<int64_t>(width_of(out.type));
  for (int64_t n = 0; n < tuples; ++n) {
    int64_t offset = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const auto axis = static_cast<size_t>(d);
      const int64_t index = checked_index(c, index_at(indices, n * depth + d), out.dims[axis]);
      offset += index * stride_of(out.dims, axis);
    }
    scatter_into(c.attrs<Attrs>().reduction, out.type, out.data + offset * width,
                 c.inputs[2].data + n * piece * width, piece);
  }
}

void gradient(GradientContext& c) {
  const ScatterReduction reduction = c.attrs<Attrs>().reduction;
  const bool replaces = reduction == ScatterReduction::kNone;
  if (!replaces && reduction != ScatterReduction::kAdd) {
    return gradient_reduced_scatter(
        c, reduction,
        {[&](Edge* data, Edge* updates, std::string_view by) {
           return c.op("ScatterND", {data, c.in(1), updates}, c.attributes().set("reduction", by));
         },
         [&](Edge* data) {
           return c.op("GatherND", {data, c.in(1)});
         }});
  }
  if (c.wants(0)) {
    Edge* dx = c.gradient();
    if (replaces) {
      Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(2))});
      dx = c.op("ScatterND", {dx, c.in(1), zeros});
    }
    c.set(0, dx);
  }
  if (c.wants(2)) c.set(2, c.op("GatherND", {c.gradient(), c.in(1)}));
}

}  // namespace

extern const OpDef op_scatter_nd = {
    .name = "ScatterND",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
