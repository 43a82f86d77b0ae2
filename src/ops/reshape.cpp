#include <algorithm>

#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  bool allow_zero = false;
  std::span<const int64_t> shape;  // before opset 5
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 5) {
    a->shape = c.integers("shape");
    c.ignore("consumed_inputs");
  } else if (c.node().inputs.size() < 2 || c.node().inputs[1] == nullptr) {
    c.reject("input 1 (shape) is missing");
  }
  if (c.opset() >= 14) a->allow_zero = c.integer("allowzero", 0) != 0;
  return a;
}

// What is left for the dimension -1: the input's elements over the product of the other dimensions.
// Dimensions that occur on both sides cancel first, so that sums and zeros divide too.
Dim remaining(const InferContext& c, std::span<const Dim> from, const std::vector<Dim>& to, size_t gap) {
  std::vector<Dim> numerator(from.begin(), from.end());
  Dim denominator = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i == gap) continue;
    const auto same = std::find(numerator.begin(), numerator.end(), to[i]);
    if (same != numerator.end()) {
      numerator.erase(same);
    } else {
      denominator = denominator * to[i];
    }
  }
  const Dim elements = product(numerator);
  if (denominator == Dim(0)) c.reject("dimension -1 of shape {} is ambiguous", to_string(to));
  if (elements.is_constant() && denominator.is_constant() && elements.value() % denominator.value() != 0)
    c.reject("shape {} does not divide the input's shape {}", to_string(to), to_string(from));
  return floor_div(elements, denominator);
}

std::optional<std::vector<Dim>> requested_shape(InferContext& c) {
  if (!c.has_input(1)) {
    const auto shape = c.attrs<Attrs>().shape;
    return std::vector<Dim>(shape.begin(), shape.end());
  }
  c.expect_type(1, types(ElementType::kInt64));
  known_length(c, 1);
  const auto values = c.values(1);
  if (!values) return std::nullopt;
  return std::vector<Dim>(values->begin(), values->end());
}

void check_elements(const InferContext& c, std::span<const Dim> from, const std::vector<Dim>& to) {
  const Dim before = product(from), after = product(to);
  if (before.is_constant() && after.is_constant() && before.value() != after.value())
    c.reject("shape {} has {} elements, the input's shape {} has {}", to_string(to), after.value(),
             to_string(from), before.value());
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  auto shape = requested_shape(c);
  if (!shape) {
    set_output_shaped_by(c, c.type(0), 1);
    if (const auto values = c.values(0)) c.set_values(0, *values);
    return;
  }
  std::optional<size_t> gap;
  for (size_t i = 0; i < shape->size(); ++i) {
    Dim& d = (*shape)[i];
    if (d == Dim(-1)) {
      if (gap) c.reject("shape {} has more than one -1", to_string(*shape));
      gap = i;
    } else if (d == Dim(0) && !c.attrs<Attrs>().allow_zero) {
      if (c.ranked(0) && i >= c.rank(0))
        c.reject("dimension {} of shape {} copies an axis that the input's shape {} lacks", i,
                 to_string(*shape), to_string(c.dims(0)));
      d = c.ranked(0) ? c.dims(0)[i] : c.unknown("");
    } else if (d.is_constant() && d.value() < 0) {
      c.reject("shape {} has a negative dimension", to_string(*shape));
    }
  }
  if (gap) (*shape)[*gap] = c.ranked(0) ? remaining(c, c.dims(0), *shape, *gap) : c.unknown("");
  if (c.ranked(0)) check_elements(c, c.dims(0), *shape);
  c.set_output(0, c.type(0), *shape);
  if (const auto values = c.values(0)) c.set_values(0, *values);
}

// One that leaves (N, C) alone and regroups what follows.
void layout(LayoutContext& c) {
  const TypeInfo& y = c.output(0).type;
  if (c.opset() < 5 || !c.ranked(0) || c.rank(0) < 3 || !y.ranked || y.rank() < 3) return;
  if (!c.has_length(1, y.rank()) || !(c.dims(0)[0] == y.dims[0]) || !(c.dims(0)[1] == y.dims[1])) return;
  const bool concrete = c.output(0).is_concrete();
  const auto values = known_values(c.input(1));
  // A zero copies the dimension at its place, and places change.
  const bool copies = !values || std::find(values->begin(), values->end(), Dim(0)) != values->end();
  if (!values || (copies && !(concrete && c.integers(1)))) return;
  const std::vector<int64_t> order = LayoutContext::order(y.rank());
  c.either({0});
  if (!concrete) return c.changes().set_entries(1, order);
  std::vector<int64_t> shape;
  for (int64_t axis : order) shape.push_back(y.dims[static_cast<size_t>(axis)].value());
  c.changes().set_integers(1, shape);
}

}  // namespace

extern const OpDef op_reshape = {
    .name = "Reshape",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .layout = layout,
    .gradient = gradient_whole,
};

}  // namespace plimsoll
