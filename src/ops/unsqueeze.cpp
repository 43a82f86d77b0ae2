#include <algorithm>

#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  std::span<const int64_t> axes;  // before opset 13
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 13) {
    if (!c.has("axes")) c.reject("attribute 'axes' is missing");
    a->axes = c.integers("axes");
  } else if (c.node().input(1) == nullptr) {
    c.reject("input 1 (axes) is missing");
  }
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto axes = attribute_or_input(c, c.attrs<Attrs>().axes, 1);
  if (!axes) {
    const auto count = known_length(c, 1);
    if (!count || *count > InferContext::kMaxRank) return c.set_unranked_output(0, c.type(0));
    return c.set_output(0, c.type(0), unknown_dims(c, c.rank(0) + *count));
  }
  const size_t rank = c.rank(0) + axes->size();
  const std::vector<int64_t> added = resolve_axes(c, *axes, rank);
  std::vector<Dim> dims;
  auto next = c.dims(0).begin();
  for (size_t i = 0; i < rank; ++i) {
    const bool is_new = std::find(added.begin(), added.end(), static_cast<int64_t>(i)) != added.end();
    dims.push_back(is_new ? Dim(1) : *next++);
  }
  c.set_output(0, c.type(0), dims);
  if (const auto values = c.values(0)) c.set_values(0, *values);
}

// The axes that were there must be left in the order in which they come.
void layout(LayoutContext& c) {
  const TypeInfo& output = c.output(0).type;
  if (!c.ranked(0) || !output.ranked) return;
  const auto axes = resolved_axes(attribute_or_known(c, c.attrs<Attrs>().axes, 1), output.rank());
  if (!axes) return;
  std::vector<int64_t> kept;  // by axis of the output: which one of the input
  int64_t next = 0;
  for (size_t i = 0; i < output.rank(); ++i) {
    const bool is_new = std::find(axes->begin(), axes->end(), static_cast<int64_t>(i)) != axes->end();
    kept.push_back(is_new ? -1 : next++);
  }
  std::vector<int64_t> moved;
  for (int64_t axis : LayoutContext::order(output.rank())) {
    if (kept[static_cast<size_t>(axis)] >= 0) moved.push_back(kept[static_cast<size_t>(axis)]);
  }
  if (moved != LayoutContext::order(c.rank(0))) return;
  c.either({0});
  set_moved_axes(c, *axes, output.rank());
}

}  // namespace

extern const OpDef op_unsqueeze = {
    .name = "Unsqueeze",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .layout = layout,
    .gradient = gradient_whole,
};

}  // namespace plimsoll
