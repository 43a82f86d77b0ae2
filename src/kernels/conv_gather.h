// A 1x1 kernel whose strides let pixels meet in one set of the cache: conv.cpp copies those that count
// together first. Part of conv.h.
#pragma once

#include "kernels/conv_few.h"

namespace plimsoll::kernels {

inline constexpr int64_t kLeastGathered = 64;  // output channels, that pay for the copy

// Told by the kernel alone; the pixels, so many times the channels' bytes, are part of the scratch then.
template <class T>
bool gathers_pixels(const ConvShape& s) {
  const bool is_strided = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_w > 1 && s.groups == 1;
  return is_strided && s.pad_top == 0 && s.pad_left == 0 && !kIsHalf<T> && !is_few_channel_conv(s) &&
         s.out_c >= kLeastGathered && s.stride_w * s.in_c * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
}

}  // namespace plimsoll::kernels
