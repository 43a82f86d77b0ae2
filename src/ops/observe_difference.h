// The numbers that the operator ObserveDifference tells of two values, as doubles.
#pragma once

#include <cstdint>

namespace plimsoll {

enum DifferenceNumber : int64_t {
  kDifferenceCount,      // of elements; -1 if their shapes are not the same, and then all else is 0
  kDifferenceSignal,     // the sum of squares of the first value
  kDifferenceOther,      // of the second
  kDifferenceNoise,      // of what is between them
  kDifferenceProduct,    // the sum of their products
  kDifferenceLargest,    // distance of two elements
  kDifferenceNotFinite,  // elements of which one is NaN or an infinity, and the other is not the same
                         // infinity
  kDifferenceRows,       // along the last axis
  kDifferenceSameTop,    // of them: the largest element is at the same place
  kDifferenceNumbers,
};

}  // namespace plimsoll
