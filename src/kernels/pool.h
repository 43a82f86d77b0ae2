// Pooling over channels-last (NHWC, NDHWC) tensors of floats; those of 16 bits are rounded once. Nothing here
// allocates or throws.
#pragma once

#include <cstdint>

#include "kernels/storage.h"

namespace plimsoll::kernels {

struct PoolShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, channels = 1;
  int64_t out_h = 1, out_w = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  // Of three dimensions, the first.
  int64_t in_d = 1, out_d = 1, kernel_d = 1, stride_d = 1, dilation_d = 1, pad_front = 0, pad_back = 0;
};

// A window without an element inside the image gives the lowest finite number, an average of none gives zero.
void max_pool(const PoolShape& shape, const float* x, float* y, int threads);
void max_pool(const PoolShape& shape, const double* x, double* y, int threads);
void max_pool(const PoolShape& shape, const Float16* x, Float16* y, int threads);
void max_pool(const PoolShape& shape, const BFloat16* x, BFloat16* y, int threads);
// Divides by the number of elements inside the image, or, with count_padding, inside the padded image.
void average_pool(const PoolShape& shape, bool count_padding, const float* x, float* y, int threads);
void average_pool(const PoolShape& shape, bool count_padding, const double* x, double* y, int threads);
void average_pool(const PoolShape& shape, bool count_padding, const Float16* x, Float16* y, int threads);
void average_pool(const PoolShape& shape, bool count_padding, const BFloat16* x, BFloat16* y, int threads);

// All `pixels` of each image: (batch, pixels, channels) -> (batch, channels).
inline PoolShape whole_image(int64_t batch, int64_t pixels, int64_t channels) {
  PoolShape s;
  s.batch = batch, s.channels = channels;
  s.in_w = s.kernel_w = pixels;
  return s;
}

}  // namespace plimsoll::kernels
