#include "ops/layout.h"

#include <algorithm>
#include <numeric>

namespace plimsoll {
namespace {

// Already what the move would make it.
bool is_channels_last(const LayoutContext& c) {
  const Attribute* flag = c.node().attribute("channels_last");
  return flag != nullptr && flag->i != 0;
}

void set_channels_last(LayoutContext& c) {
  c.changes().set("channels_last", int64_t{1});
}

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

void layout_unary(LayoutContext& c) {
  c.either({0});
}

void layout_broadcasting(LayoutContext& c) {
  if (c.opset() < 7) return;
  std::vector<size_t> inputs(c.input_count());
  std::iota(inputs.begin(), inputs.end(), size_t{0});
  layout_broadcasting(c, inputs);
}

void layout_broadcasting(LayoutContext& c, std::span<const size_t> inputs) {
  const TypeInfo& output = c.output(0).type;
  if (!output.ranked) return;
  bool has_port = false;
  for (size_t i : inputs) {
    if (!c.has_input(i)) continue;
    const bool is_port = c.ranked(i) && c.rank(i) == output.rank();
    has_port |= is_port && !c.is_weight(i);
    if (!is_port && !c.is_weight(i) && !c.has_one_element(i)) return;
  }
  if (!has_port) return;
  c.either({});
  for (size_t i : inputs) {
    if (!c.has_input(i)) continue;
    if (c.rank(i) == output.rank()) {
      c.make_port(i);
    } else if (!c.has_one_element(i)) {
      c.changes().broadcast(i);
    }
  }
}

void layout_windowed(LayoutContext& c) {
  const ElementType type = c.type(0);
  const bool is_byte = type == ElementType::kInt8 || type == ElementType::kUint8;
  if ((!is_float(type) && !is_byte) || is_channels_last(c)) return;
  if (c.is_used(1)) return;  // indices count in ONNX's order
  c.moved({0});
  set_channels_last(c);
}

void layout_global_pool(LayoutContext& c) {
  if (is_channels_last(c)) return;
  c.either({0});
  set_channels_last(c);
}

void layout_fused(LayoutContext& c, LayoutChoice choice, size_t addend) {
  if (is_channels_last(c)) return;
  c.either({0, addend});
  c.layout.choice = choice;
  set_channels_last(c);
}

void layout_axis_attribute(LayoutContext& c, int64_t axis) {
  if (!c.ranked(0)) return;
  c.either({0});
  c.changes().set("axis",
                  LayoutContext::place(axis < 0 ? axis + static_cast<int64_t>(c.rank(0)) : axis, c.rank(0)));
}

std::optional<std::vector<int64_t>> resolved_axes(const std::optional<std::vector<int64_t>>& axes,
                                                  size_t rank) {
  if (!axes) return std::nullopt;
  std::vector<int64_t> resolved;
  for (int64_t axis : *axes) {
    const int64_t from_front = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
    if (from_front < 0 || from_front >= static_cast<int64_t>(rank)) return std::nullopt;
    resolved.push_back(from_front);
  }
  return resolved;
}

std::optional<std::vector<int64_t>> attribute_or_known(const NodeContext& c,
                                                       std::span<const int64_t> attribute, size_t input) {
  if (c.has_input(input)) return c.integers(input);
  return std::vector<int64_t>(attribute.begin(), attribute.end());
}

void set_moved_axes(LayoutContext& c, const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int64_t> places;
  places.reserve(axes.size());
  for (int64_t axis : axes) places.push_back(LayoutContext::place(axis, rank));
  if (c.has_input(1)) {
    c.changes().set_integers(1, places);
  } else if (axes.size() < rank) {
    c.changes().set("axes", places);
  }
}

void layout_removed_axes(LayoutContext& c, const std::vector<int64_t>& axes, bool keeps_dims) {
  const size_t rank = c.rank(0);
  std::vector<int64_t> plain, moved;  // what remains, in the order in which it is left
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) {
    if (!contains(axes, axis)) plain.push_back(axis);
  }
  for (int64_t axis : LayoutContext::order(rank)) {
    if (!contains(axes, axis)) moved.push_back(axis);
  }
  std::vector<int64_t> moved_output;  // what the output would be if it were a port
  for (int64_t i : LayoutContext::order(plain.size())) moved_output.push_back(plain[static_cast<size_t>(i)]);
  const bool same = plain == moved;
  if (!keeps_dims && !same && moved != moved_output) return;
  c.either({0});
  if (!keeps_dims && same) c.keep_output(0);
  set_moved_axes(c, axes, rank);
}

}  // namespace plimsoll
