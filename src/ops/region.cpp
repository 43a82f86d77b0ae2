#include "ops/region.h"

namespace plimsoll {

void need_broadcast(RegionContext& c, size_t input) {
  const size_t missing = c.wanted().size() - c.rank(input);
  for (size_t axis = 0; axis < c.rank(input); ++axis) {
    if (c.size(input, axis) != 1) c.needs[input][axis] = c.wanted(axis + missing);
  }
}

void region_broadcasting(RegionContext& c) {
  // Before opset 7 an attribute says where the second input begins.
  if (c.opset() < 7 && c.input_count() > 1) return c.whole();
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.has_input(i)) need_broadcast(c, i);
  }
  c.runs_on_parts = true;
}

void region_along(RegionContext& c, size_t first, size_t last) {
  for (size_t axis = 0; axis < c.rank(0); ++axis) {
    if (axis < first || axis >= last) {
      c.needs[0][axis] = c.wanted(axis);
    } else {
      c.made[axis] = {0, c.output(c.output_index()).type.dims[axis].value()};
    }
  }
  c.runs_on_parts = true;
}

}  // namespace plimsoll
