#include <algorithm>

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

}  // namespace

extern const OpDef op_reshape = {
    .name = "Reshape",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
};

}  // namespace plimsoll
