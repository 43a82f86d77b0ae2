#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 1;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 1);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  if (!c.ranked(0)) return c.set_output(0, c.type(0), unknown_dims(c, 2));
  const auto rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = c.attrs<Attrs>().axis;
  if (axis < -rank || axis > rank) c.reject("axis {} is outside [{}, {}]", axis, -rank, rank);
  if (axis < 0) axis += rank;
  const auto split = static_cast<size_t>(axis);
  c.set_output(0, c.type(0), {product(c.dims(0).first(split)), product(c.dims(0).subspan(split))});
  if (const auto values = c.values(0)) c.set_values(0, *values);
}

}  // namespace

extern const OpDef op_flatten = {
    .name = "Flatten",
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .gradient = gradient_whole,
};

}  // namespace plimsoll
