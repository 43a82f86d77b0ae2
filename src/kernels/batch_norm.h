// Batch normalization in training, over channels-last rows of float, double, Float16 and BFloat16, which are
// computed in float: what surrounds it, an addend before a Relu and the Relu's mask, goes with it in one
// pass.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

// y = a * x + b + z with numbers of each channel, then Relu if `relu`; z may be null; y may be x or z.
template <class T>
struct NormalizedRows {
  const T *x = nullptr, *z = nullptr;
  T* y = nullptr;
  int64_t rows = 0, channels = 0;
  const LaneOf<T>*a = nullptr, *b = nullptr;
  bool relu = false;
};
template <class T>
void normalize_rows(const NormalizedRows<T>& job);

// Of the gradient: dy counts where a * x + b, as above, is positive; everywhere if a is null.
template <class T>
struct NormGradientRows {
  const T *x = nullptr, *dy = nullptr;
  int64_t rows = 0, channels = 0;
  const LaneOf<T>*a = nullptr, *b = nullptr;
  const LaneOf<T>* mean = nullptr;
};
// For each channel, the sum of dy, and of dy * (x - mean); both start anew.
template <class T>
void norm_gradient_sums(const NormGradientRows<T>& job, LaneOf<T>* dy, LaneOf<T>* product);
// dx = slope * dy + tilt * (x - mean) + shift; dx may be x or dy.
template <class T>
void norm_gradient_rows(const NormGradientRows<T>& job, const LaneOf<T>* slope, const LaneOf<T>* tilt,
                        const LaneOf<T>* shift, T* dx);

}  // namespace plimsoll::kernels
