#include <cstring>
#include <type_traits>

#include "graph/gradient.h"
#include "ops/checked_index.h"
#include "ops/movement.h"
#include "ops/selection_cost.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t batch = 0;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() >= 12) a->batch = c.integer("batch_dims", 0);
  if (a->batch < 0 || a->batch > static_cast<int64_t>(InferContext::kMaxRank))
    c.reject("batch_dims {} is no number of dimensions", a->batch);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, types(ElementType::kInt64));
  c.expect_rank(0, 1, InferContext::kMaxRank);
  c.expect_rank(1, 1, InferContext::kMaxRank);
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  const auto data = c.dims(0), indices = c.dims(1);
  const auto batch = static_cast<size_t>(c.attrs<Attrs>().batch);
  if (batch >= data.size() || batch >= indices.size())
    c.reject("batch_dims {} is too many for shapes {} and {}", batch, to_string(data), to_string(indices));
  const Dim depth = indices.back();
  if (!depth.is_constant()) return c.set_unranked_output(0, c.type(0));
  if (depth.value() < 1 || depth.value() > static_cast<int64_t>(data.size() - batch))
    c.reject("indices of shape {} do not fit data of shape {}", to_string(indices), to_string(data));
  std::vector<Dim> dims(indices.begin(), indices.end() - 1);
  for (size_t i = 0; i < batch; ++i) dims[i] = unify(c, data[i], indices[i]);
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(batch) + depth.value(), data.end());
  c.set_output(0, c.type(0), dims);
}

constexpr size_t kMostAxes = InferContext::kMaxRank;

// Calls f(element that tuple n means) for every tuple of a batch.
template <typename F>
void for_each_tuple(const RunContext& c, size_t batch, int64_t tuples, int64_t first, F&& f) {
  const TensorView &data = c.inputs[0], &indices = c.inputs[1];
  const auto depth = static_cast<size_t>(indices.dims.back());
  int64_t sizes[kMostAxes], strides[kMostAxes];
  for (size_t d = 0; d < depth; ++d)
    sizes[d] = data.dims[batch + d], strides[d] = stride_of(data.dims, batch + d);
  const int64_t* given = indices.as<int64_t>() + first * static_cast<int64_t>(depth);
  for (int64_t n = 0; n < tuples; ++n, given += depth) {
    int64_t offset = 0;
    for (size_t d = 0; d < depth; ++d) offset += checked_index(c, given[d], sizes[d]) * strides[d];
    f(offset);
  }
}

// Nothing is taken, but what is asked for must be there.
void check_indices(const RunContext& c, size_t batch) {
  const TensorView& indices = c.inputs[1];
  for_each_tuple(c, batch, indices.elements() / indices.dims.back(), 0, [](int64_t) {});
}

// Pieces of kBytes; 0: of `bytes`.
template <int64_t kBytes>
void gather_pieces(const RunContext& c, size_t batch, int64_t tuples, int64_t batch_elements, int64_t bytes) {
  const TensorView& data = c.inputs[0];
  const auto width = static_cast<int64_t>(width_of(data.type));
  const int64_t batches = count_of(data.dims.first(batch));
  std::byte* out = c.outputs[0].data;
  for (int64_t n = 0; n < batches; ++n) {
    const std::byte* from = data.data + n * batch_elements * width;
    for_each_tuple(c, batch, tuples, n * tuples, [&](int64_t offset) {
      std::memcpy(out, from + offset * width, static_cast<size_t>(kBytes > 0 ? kBytes : bytes));
      out += kBytes > 0 ? kBytes : bytes;
    });
  }
}

void run(const RunContext& c) {
  const TensorView& data = c.inputs[0];
  const TensorView& indices = c.inputs[1];
  const auto batch = static_cast<size_t>(c.attrs<Attrs>().batch);
  const int64_t depth = indices.dims.back();
  const int64_t batches = count_of(data.dims.first(batch));
  if (c.outputs[0].elements() == 0 && indices.elements() == 0) return;
  const int64_t tuples = batches == 0 ? 0 : indices.elements() / depth / batches;
  const int64_t batch_elements = count_of(data.dims.subspan(batch));
  const int64_t piece = count_of(data.dims.subspan(batch + static_cast<size_t>(depth)));
  const auto width = static_cast<int64_t>(width_of(data.type));
  if (piece == 0) return check_indices(c, batch);
  const auto gather = [&](auto width_tag) {
    gather_pieces<decltype(width_tag)::value>(c, batch, tuples, batch_elements, piece * width);
  };
  switch (piece * width) {
    case 4:
      return gather(std::integral_constant<int64_t, 4>());
    case 8:
      return gather(std::integral_constant<int64_t, 8>());
    default:
      return gather(std::integral_constant<int64_t, 0>());
  }
}

// With the batch's own positions in front, as ScatterND wants them.
Edge* full_indices(const GradientContext& c) {
  const int64_t batch = c.attrs<Attrs>().batch;
  if (batch == 0) return c.in(1);
  if (!c.ranked(1)) c.reject("its gradient needs the rank of its indices");
  const auto rank = static_cast<int64_t>(c.rank(1));
  const auto shape = [&](int64_t start, int64_t end) {
    return c.op("Shape", {c.in(1)}, c.attributes().set("start", start).set("end", end));
  };
  Edge* ones = c.build.integers({1});
  Edge* const of_column[] = {shape(0, rank - 1), ones};
  const AttributeList along = c.attributes().set("axis", int64_t{0});
  Edge* column_shape = c.build.emit("", "Concat", of_column, along.list())->outputs[0];
  std::vector<Edge*> columns;
  for (int64_t i = 0; i < batch; ++i) {
    Edge* size = c.op("Squeeze", {shape(i, i + 1)});
    Edge* positions = c.op("Range", {c.build.scalar(int64_t{0}), size, c.build.scalar(int64_t{1})});
    std::vector<int64_t> added;
    for (int64_t d = 0; d < rank; ++d) {
      if (d != i) added.push_back(d);
    }
    columns.push_back(
        c.op("Expand", {c.op("Unsqueeze", {positions, c.build.integers(added)}), column_shape}));
  }
  columns.push_back(c.in(1));
  return c.build.emit("", "Concat", columns, c.attributes().set("axis", int64_t{-1}).list())->outputs[0];
}

void gradient(GradientContext& c) {
  Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(0))});
  Edge* indices = full_indices(c);
  c.set(0, c.op("ScatterND", {zeros, indices, c.gradient()}, c.attributes().set("reduction", "add")));
}

}  // namespace

extern const OpDef op_gather_nd = {
    .name = "GatherND",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_selection,
    .unaligned_inputs = 1,
    .gradient = gradient,
};

}  // namespace plimsoll
