// Which part of an axis Slice takes, for its gradient too.
#pragma once

#include "tensor/dim.h"

namespace plimsoll {

// What is taken of one axis: `count` elements from `start` by `step`.
struct SliceRange {
  Dim start = 0, count = 0;
  int64_t step = 1;
  bool is_whole(Dim dim) const { return start == Dim(0) && count == dim && step == 1; }
};

SliceRange make_slice_range(Dim dim, Dim start, Dim end, int64_t step);

}  // namespace plimsoll
