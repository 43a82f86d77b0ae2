// What the weight gradient of a convolution moves and multiplies, over channels-last tensors.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

// `count` runs of `length` elements, `from_stride` apart, to where they are `to_stride` apart, in the type
// that is computed in.
template <class T>
void copy_runs(const T* from, int64_t from_stride, LaneOf<T>* to, int64_t to_stride, int64_t length,
               int64_t count);

// to[c] += sum over `count` pixels of a[c] * b[c], for `channels` of them; pixels of a and b are so far
// apart.
template <class T>
void add_channel_products(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t channels,
                          int64_t count, LaneOf<T>* to);

}  // namespace plimsoll::kernels
