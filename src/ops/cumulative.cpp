#include "ops/cumulative.h"

namespace plimsoll {

const void* cumulative_attrs(AttrContext& c) {
  CumulativeAttrs* a = c.make<CumulativeAttrs>();
  a->exclusive = c.integer("exclusive", 0) != 0;
  a->reverse = c.integer("reverse", 0) != 0;
  return a;
}

void infer_cumulative(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  c.expect_type(1, kIndexTypes);
  const auto length = known_length(c, 1);
  if (length && *length != 1) c.reject("axis: expected one number, found shape {}", to_string(c.dims(1)));
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (const auto axis = c.integers(1)) c.axis((*axis)[0], c.rank(0));
  c.set_output(0, c.type(0), c.dims(0));
}

void alias_cumulative(AliasContext& c) {
  c.overwrite(0);
}

size_t cumulative_axis(const RunContext& c) {
  const auto rank = static_cast<int64_t>(c.inputs[0].rank());
  const int64_t given = index_at(c.inputs[1], 0), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    fail(ErrorCode::kInvalidArgument, "{}: axis {} is outside [{}, {})", c.node->label(), given, -rank, rank);
  return static_cast<size_t>(axis);
}

}  // namespace plimsoll
