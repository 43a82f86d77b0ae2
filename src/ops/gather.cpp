#include <cstring>

#include "graph/gradient.h"
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

void run(const RunContext& c) {
  const TensorView& data = c.inputs[0];
  const TensorView& indices = c.inputs[1];
  int64_t axis = c.attrs<Attrs>().axis;
  if (axis < 0) axis += static_cast<int64_t>(data.rank());
  const auto at = static_cast<size_t>(axis);
  const int64_t rows = data.dims[at], count = indices.elements();
  const int64_t outer = count_of(data.dims.first(at));
  const int64_t row_bytes = stride_of(data.dims, at) * static_cast<int64_t>(width_of(data.type));
  const Edge& table = *c.node->inputs[0];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = checked_index(c, index_at(indices, i), rows);
    if (row_bytes == 0) continue;
    if (table.by_rows) {
      table.data->read(index * row_bytes,
                       {c.outputs[0].data + i * row_bytes, static_cast<size_t>(row_bytes)});
      continue;
    }
    for (int64_t o = 0; o < outer; ++o)
      std::memcpy(c.outputs[0].data + (o * count + i) * row_bytes, data.data + (o * rows + index) * row_bytes,
                  static_cast<size_t>(row_bytes));
  }
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
