// Dense and grouped 2-D convolution over channels-last (NHWC) tensors of float, double, Float16 or BFloat16,
// weights packed ahead. The 16-bit types are computed in float and rounded once; their weights stay 16 bits
// wide, rows of their input are widened into scratch.
//
// Implicit GEMM: a tile of output pixels times a panel of output channels stays in registers while the
// taps of the kernel, contiguous in NHWC, stream past it. Nothing here allocates, owns memory or throws.
// The packed format depends on the instruction set that Highway chose for this process. Results depend
// neither on the number of threads nor on how rows are split among them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/storage.h"

namespace plimsoll::kernels {

inline constexpr size_t kConvAlignment = 64;  // of packed weights and scratch

// Padding below and to the right is implied by the output's size; negative padding crops. Strides of the
// output count elements; zero means dense.
struct ConvShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1, out_c = 1;
  int64_t groups = 1;  // divides in_c and out_c
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t out_pixel_stride = 0, out_row_stride = 0, out_image_stride = 0;
};

// Weights before packing, by element strides: ONNX's OIHW at any alignment, or a view of it. Output channel o
// is at o / block * block_stride + o % block * out_stride.
template <class T = float>
struct ConvWeights {
  const void* data = nullptr;
  int64_t out_stride = 0, in_stride = 0, row_stride = 0, column_stride = 0;
  int64_t block = 1, block_stride = 0;
  const T* scale = nullptr;  // one factor per output channel, multiplied in; aligned; may be null
};
template <class T = float>
ConvWeights<T> oihw_weights(const ConvShape& s, const void* data, const T* scale = nullptr) {
  const int64_t plane = s.kernel_h * s.kernel_w;
  const int64_t out_stride = s.in_c / s.groups * plane;
  return {data, out_stride, plane, s.kernel_w, 1, s.out_c, s.out_c * out_stride, scale};
}

template <class T = float>
struct ConvEpilogue {
  const T* bias = nullptr;    // one per output channel, or null
  const T* addend = nullptr;  // laid out as the output; is the output itself or apart from it; or null
  Activation activation;      // of product + bias + addend
};

// Bytes of the packed weights; the format depends on kernel, channels and groups only.
template <class T = float>
size_t conv_packed_bytes(const ConvShape& shape);
template <class T = float>
void conv_pack(const ConvShape& shape, const ConvWeights<T>& weights, void* packed, int threads = 1);

// Scratch of one thread: min(limit, base + rows * (bytes_per_row + columns * bytes_per_pixel)), where rows
// are the input rows that the kernel reaches, columns the input's.
struct ConvScratch {
  int64_t base_bytes = 0;
  int64_t bytes_per_row = 0;
  int64_t bytes_per_pixel = 0;
  int64_t limit_bytes = 0;  // base included
};
// The sizes of the image are not looked at; padding may be more than they imply. Throws on overflow.
template <class T = float>
ConvScratch conv_scratch(const ConvShape& shape, int64_t pad_bottom, int64_t pad_right);
// In 16 bits, or where channels are a multiple of 4096 bytes, a kernel of 1x1 may turn out to be a product of
// matrices, which takes this instead, at most, of all threads; 0 if it cannot.
template <class T = float>
int64_t conv_product_scratch_bytes(const ConvShape& shape, int threads);
// For a concrete shape and all threads.
template <class T = float>
size_t conv_scratch_bytes(const ConvShape& shape, int threads);

template <class T>
void conv_as(const ConvShape& shape, const T* x, const void* packed, T* y, const ConvEpilogue<T>& epilogue,
             void* scratch, int threads);
inline void conv(const ConvShape& shape, const float* x, const void* packed, float* y,
                 const ConvEpilogue<>& epilogue, void* scratch, int threads) {
  conv_as<float>(shape, x, packed, y, epilogue, scratch, threads);
}

}  // namespace plimsoll::kernels
