// Pooling over channels-last (NHWC) float tensors. Nothing here allocates or throws.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

struct PoolShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, channels = 1;
  int64_t out_h = 1, out_w = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

// A window without an element inside the image gives the lowest float, an average of none gives zero.
void max_pool(const PoolShape& shape, const float* x, float* y, int threads);
// Divides by the number of elements inside the image, or, with count_padding, inside the padded image.
void average_pool(const PoolShape& shape, bool count_padding, const float* x, float* y, int threads);

// Over all `pixels` of each image: (batch, pixels, channels) -> (batch, channels).
void global_max_pool(int64_t batch, int64_t pixels, int64_t channels, const float* x, float* y, int threads);
void global_average_pool(int64_t batch, int64_t pixels, int64_t channels, const float* x, float* y,
                         int threads);

}  // namespace plimsoll::kernels
