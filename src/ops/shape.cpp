#include <algorithm>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t start = 0;
  std::optional<int64_t> end;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 15) return a;
  a->start = c.integer("start", 0);
  if (c.has("end")) a->end = c.integer("end");
  return a;
}

// The half-open range of axes, clamped to the rank.
std::pair<size_t, size_t> range(const Attrs& a, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + r : axis, 0, r); };
  const int64_t start = clamp(a.start), end = a.end ? clamp(*a.end) : r;
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  if (!c.ranked(0)) return c.set_output(0, ElementType::kInt64, {c.unknown("rank")});
  const auto [start, end] = range(c.attrs<Attrs>(), c.rank(0));
  c.set_output(0, ElementType::kInt64, {Dim(static_cast<int64_t>(end - start))});
  c.set_values(0, c.dims(0).subspan(start, end - start));
}

void run(const RunContext& c) {
  const auto dims = c.inputs[0].dims;
  const auto [start, end] = range(c.attrs<Attrs>(), dims.size());
  std::copy(dims.begin() + static_cast<ptrdiff_t>(start), dims.begin() + static_cast<ptrdiff_t>(end),
            c.outputs[0].as<int64_t>());
}

// The shape of the moved tensor, put back into ONNX's order.
void layout(LayoutContext& c) {
  if (!c.ranked(0)) return;
  const auto [start, end] = range(c.attrs<Attrs>(), c.rank(0));
  Layout::OutputList list{static_cast<int64_t>(c.rank(0)), {}};
  for (size_t axis = start; axis < end; ++axis)
    list.entries.push_back(LayoutContext::place(static_cast<int64_t>(axis), c.rank(0)));
  c.either({0});
  c.keep_output(0);
  c.changes().remove("start");
  c.changes().remove("end");
  c.layout.output_list = list;
}

}  // namespace

extern const OpDef op_shape = {
    .name = "Shape",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout,
    .unaligned_inputs = 1,
    .gradient = no_gradient,
};

}  // namespace plimsoll
