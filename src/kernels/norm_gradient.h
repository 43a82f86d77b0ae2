// Gradients of normalization along rows, for float, double, Float16 and BFloat16, which are computed in
// float.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

// Rows of `cols` elements that were normalized each by itself: y = (x - mean) / sqrt(variance + epsilon) *
// scale, or, if not `centered`, y = x / sqrt(mean of squares + epsilon) * scale. The moments are computed
// anew.
template <class T>
struct RowNormGradient {
  const T *x = nullptr, *dy = nullptr;
  const T* scale = nullptr;                      // one per column, or null: 1
  T* dx = nullptr;                               // may be x or dy; or null
  LaneOf<T>*dscale = nullptr, *dbias = nullptr;  // sums over the rows are added here; or null
  int64_t rows = 0, cols = 0;
  float epsilon = 0;
  bool centered = true;
};
template <class T>
void row_norm_gradient(const RowNormGradient<T>& job);

}  // namespace plimsoll::kernels
