// What batch normalization and its gradient sum up for each channel, and the gradient itself; for float,
// double, Float16 and BFloat16, which are computed in float.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

// One number per channel in each array; `count` of elements in each channel so far.
template <class W>
struct ChannelSums {
  W *mean = nullptr, *squares = nullptr;  // of x; the sum of squared distances to the mean
  W *dy = nullptr, *product = nullptr;  // sums of dy, and of dy times the distance of x to the mean; or null
  int64_t count = 0;
  void merge(const ChannelSums& other, int64_t channels);
};

// Of elements [outer, channels, inner]: x, and dy if it is not null, are read from memory once. `work` holds
// 4 * channels numbers. The sums start anew.
template <class T>
void channel_sums(const T* x, const T* dy, int64_t outer, int64_t channels, int64_t inner,
                  ChannelSums<LaneOf<T>>& sums, LaneOf<T>* work);

// dx = a * dy + b * (x - mean) + shift with numbers of each channel; dx may be x or dy.
template <class W>
struct ChannelTerms {
  const W *a = nullptr, *b = nullptr, *mean = nullptr, *shift = nullptr;
};
template <class T>
void channel_terms(const T* x, const T* dy, T* dx, int64_t outer, int64_t channels, int64_t inner,
                   const ChannelTerms<LaneOf<T>>& terms);

}  // namespace plimsoll::kernels
