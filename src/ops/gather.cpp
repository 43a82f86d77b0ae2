#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/checked_index.h"
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

// Shape arithmetic: elements of a known list by known positions.
void propagate_values(InferContext& c) {
  const auto values = c.values(0);
  const auto indices = c.integers(1);
  if (!values || !indices || c.rank(0) != 1) return;
  const auto size = static_cast<int64_t>(values->size());
  std::vector<Dim> taken;
  for (int64_t index : *indices) {
    if (index < -size || index >= size) c.reject("index {} is outside [{}, {})", index, -size, size);
    taken.push_back((*values)[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  c.set_values(0, taken);
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, kIndexTypes);
  c.expect_rank(0, 1, InferContext::kMaxRank);
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  const auto data = c.dims(0), indices = c.dims(1);
  std::vector<Dim> dims(data.begin(), data.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + static_cast<ptrdiff_t>(axis) + 1, data.end());
  c.set_output(0, c.type(0), dims);
  propagate_values(c);
}

uint32_t row_inputs(const Node& node) {
  return static_cast<const Attrs*>(node.attrs)->axis == 0 ? 1 : 0;
}

// Pieces of the data, one for each index, of all that lies before the axis.
struct Pieces {
  int64_t outer, rows, count, bytes;  // of a piece
};

// Pieces of kBytes; 0: of any size. The indices are inside.
template <int64_t kBytes, typename I>
void copy_pieces(const RunContext& c, const Pieces& s, const I* indices) {
  constexpr int64_t kTaskBytes = 64 << 10;
  const int64_t bytes = kBytes > 0 ? kBytes : s.bytes;
  const int64_t pieces = s.outer * s.count, share = std::max<int64_t>(1, kTaskBytes / bytes);
  const int64_t tasks = (pieces + share - 1) / share;
  kernels::parallel_for(tasks < 2 ? 1 : c.threads, tasks, [&](int64_t task) {
    const int64_t end = std::min(pieces, (task + 1) * share);
    for (int64_t at = task * share; at < end;) {
      const int64_t o = at / s.count, first = at % s.count, last = std::min(s.count, first + end - at);
      const std::byte* from = c.inputs[0].data + o * s.rows * bytes;
      std::byte* to = c.outputs[0].data + at * bytes;
      for (int64_t i = first; i < last; ++i, to += bytes) {
        const auto index = static_cast<int64_t>(indices[i]);
        std::memcpy(to, from + (index < 0 ? index + s.rows : index) * bytes, static_cast<size_t>(bytes));
      }
      at += last - first;
    }
  });
}

template <typename I>
void run_with(const RunContext& c, const Pieces& s) {
  const I* indices = c.inputs[1].as<I>();
  const Edge& table = *c.node->inputs[0];
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t index = checked_index(c, indices[i], s.rows);
    if (table.by_rows && s.bytes > 0)
      table.data->read(index * s.bytes, {c.outputs[0].data + i * s.bytes, static_cast<size_t>(s.bytes)});
  }
  if (table.by_rows || s.bytes == 0) return;
  switch (s.bytes) {
    case 1:
      return copy_pieces<1>(c, s, indices);
    case 2:
      return copy_pieces<2>(c, s, indices);
    case 4:
      return copy_pieces<4>(c, s, indices);
    case 8:
      return copy_pieces<8>(c, s, indices);
    default:
      return copy_pieces<0>(c, s, indices);
  }
}

void run(const RunContext& c) {
  const TensorView& data = c.inputs[0];
  int64_t axis = c.attrs<Attrs>().axis;
  if (axis < 0) axis += static_cast<int64_t>(data.rank());
  const auto at = static_cast<size_t>(axis);
  const Pieces pieces{count_of(data.dims.first(at)), data.dims[at], c.inputs[1].elements(),
                      stride_of(data.dims, at) * static_cast<int64_t>(width_of(data.type))};
  if (c.inputs[1].type == ElementType::kInt32) return run_with<int32_t>(c, pieces);
  run_with<int64_t>(c, pieces);
}

void gradient(GradientContext& c) {
  Edge* const inputs[] = {c.gradient(), c.in(1), c.shape_of(c.in(0))};
  const AttributeList attributes = c.attributes().set("axis", c.attrs<Attrs>().axis);
  c.set(0, c.build.emit(kPlimsollDomain, "GatherGradient", inputs, attributes.list())->outputs[0]);
}

}  // namespace

extern const OpDef op_gather = {
    .name = "Gather",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_selection,
    .unaligned_inputs = 1,
    .row_inputs = row_inputs,
    .gradient = gradient,
};

}  // namespace plimsoll
