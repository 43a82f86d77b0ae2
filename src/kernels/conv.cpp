#include "kernels/conv.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/checked.h"
#include "kernels/conv_functions.h"
#include "kernels/conv_gather.h"
#include "kernels/conv_narrow.h"
#include "kernels/conv_split.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace plimsoll::kernels {
namespace {

template <class T>
bool is_narrow(const ConvShape& s) {
  return std::is_same_v<T, float> && is_narrow_group_conv(s);
}

bool is_empty(const ConvShape& s) {
  return s.batch == 0 || s.out_h == 0 || s.out_w == 0 || s.out_c == 0;
}

int64_t implied_padding(int64_t out, int64_t stride, int64_t extent, int64_t pad_first, int64_t in) {
  return std::max<int64_t>(0, (out - 1) * stride + extent - pad_first - in);
}

ConvShape with_strides(ConvShape s) {
  if (s.out_pixel_stride == 0) s.out_pixel_stride = s.out_c;
  if (s.out_row_stride == 0) s.out_row_stride = s.out_w * s.out_pixel_stride;
  if (s.out_image_stride == 0) s.out_image_stride = s.out_h * s.out_row_stride;
  return s;
}

// Without padding a 1x1 kernel sees one long row: fewer ends, and no small maps.
ConvShape normalized(const ConvShape& shape) {
  ConvShape s = with_strides(shape);
  const bool plain = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                     s.pad_top == 0 && s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w;
  if (plain && s.out_row_stride == s.out_w * s.out_pixel_stride &&
      s.out_image_stride == s.out_h * s.out_row_stride) {
    s.in_w = s.out_w = s.batch * s.in_h * s.in_w;
    s.in_h = s.out_h = s.batch = 1;
  }
  return s;
}

int64_t scratch_of_thread(const ConvShape& s, const ConvScratch& need) {
  const int64_t extent = conv_extent(s.kernel_h, s.dilation_h);
  const int64_t rows = std::min(s.in_h, (s.out_h - 1) * s.stride_h + extent);
  const int64_t row = checked_add(need.bytes_per_row, checked_mul(s.in_w, need.bytes_per_pixel));
  return std::min(need.limit_bytes, checked_add(need.base_bytes, checked_mul(rows, row)));
}

template <class T>
ConvScratch need_of(const ConvShape& s) {
  return conv_scratch<T>(
      s, implied_padding(s.out_h, s.stride_h, conv_extent(s.kernel_h, s.dilation_h), s.pad_top, s.in_h),
      implied_padding(s.out_w, s.stride_w, conv_extent(s.kernel_w, s.dilation_w), s.pad_left, s.in_w));
}

// Rows of pixels times a matrix. Its weights, packed, are the same bytes.
bool is_product(const ConvShape& s) {
  return s.groups == 1 && s.kernel_h == 1 && s.kernel_w == 1 && s.batch == 1 && s.in_h == 1 && s.out_h == 1 &&
         s.stride_w == 1 && s.pad_left == 0 && s.pad_top == 0 && s.in_w == s.out_w;
}

// Computed as one: 16 bits, whose rows must be widened, and pixels that meet in one set of the cache, as
// GEMM's rows do (gemm.h).
template <class T>
bool runs_as_product(const ConvShape& s) {
  return is_product(s) && (kIsHalf<T> || s.in_c * static_cast<int64_t>(sizeof(T)) % 4096 == 0);
}

GemmShape product_shape(const ConvShape& s) {
  return {s.out_w, s.in_c, s.out_c};
}

// Whether all pixels of a 1x1 kernel lie inside the image.
bool is_inside(const ConvShape& s) {
  return (s.out_h - 1) * s.stride_h < s.in_h && (s.out_w - 1) * s.stride_w < s.in_w;
}

ConvShape gathered(ConvShape s) {
  s.in_h = s.out_h, s.in_w = s.out_w;
  s.stride_h = s.stride_w = 1;
  return s;
}

template <class T>
int64_t gathered_bytes(const ConvShape& s) {
  const int64_t pixels = checked_mul(s.batch, checked_mul(s.out_h, s.out_w));
  return round_up(checked_mul(checked_mul(pixels, s.in_c), sizeof(T)), 64);
}

template <class T>
void gather_pixels(const ConvShape& s, const T* x, T* to, int threads) {
  parallel_for(threads, s.batch * s.out_h, [&](int64_t row) {
    const T* from = x + (row / s.out_h * s.in_h + row % s.out_h * s.stride_h) * s.in_w * s.in_c;
    for (int64_t column = 0; column < s.out_w; ++column)
      std::memcpy(to + (row * s.out_w + column) * s.in_c, from + column * s.stride_w * s.in_c,
                  static_cast<size_t>(s.in_c) * sizeof(T));
  });
}

}  // namespace

template <class T>
size_t conv_packed_bytes(const ConvShape& shape) {
  if (is_few_channel_conv(shape)) return conv_few_packed_bytes<T>(shape);
  if (is_narrow<T>(shape)) return conv_narrow_packed_bytes(shape);
  return conv_functions<T>().packed_bytes(shape);
}

template <class T>
void conv_pack(const ConvShape& shape, const ConvWeights<T>& weights, void* packed, int threads) {
  if (is_few_channel_conv(shape)) return conv_few_pack<T>(shape, weights, static_cast<LaneOf<T>*>(packed));
  if constexpr (std::is_same_v<T, float>) {
    if (is_narrow<T>(shape)) return conv_narrow_pack(shape, weights, static_cast<float*>(packed));
  }
  conv_functions<T>().pack(shape, weights, static_cast<T*>(packed), threads);
}

template <class T>
ConvScratch conv_scratch(const ConvShape& shape, int64_t pad_bottom, int64_t pad_right) {
  if (is_few_channel_conv(shape) || is_narrow<T>(shape)) return {};
  return conv_functions<T>().scratch_need(shape, pad_bottom, pad_right);
}

template <class T>
int64_t conv_product_scratch_bytes(const ConvShape& s, int threads) {
  const bool is_meant = kIsHalf<T> || s.in_c * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  const bool may_be = is_meant && s.groups == 1 && s.kernel_h == 1 && s.kernel_w == 1;
  return may_be ? static_cast<int64_t>(gemm_most_scratch_bytes<T>(s.in_c, threads)) : 0;
}

template <class T>
size_t conv_scratch_bytes(const ConvShape& shape, int threads) {
  if (is_empty(shape)) return 0;
  if (gathers_pixels<T>(shape) && is_inside(shape))
    return static_cast<size_t>(gathered_bytes<T>(shape)) + conv_scratch_bytes<T>(gathered(shape), threads);
  const ConvShape s = normalized(shape);
  if (runs_as_product<T>(s) && !is_few_channel_conv(s))
    return gemm_scratch_bytes<T>(product_shape(s), s.in_c, 1, threads);
  return static_cast<size_t>(checked_mul(threads, scratch_of_thread(s, need_of<T>(s))));
}

template <class T>
void conv_as(const ConvShape& shape, const T* x, const void* packed, T* y, const ConvEpilogue<T>& epilogue,
             void* scratch, int threads) {
  if (is_empty(shape)) return;
  if (is_few_channel_conv(shape))
    return conv_few<T>(with_strides(shape), x, static_cast<const LaneOf<T>*>(packed), y, epilogue, threads);
  if constexpr (std::is_same_v<T, float>) {
    if (is_narrow<T>(shape))
      return conv_narrow(with_strides(shape), x, static_cast<const float*>(packed), y, epilogue, threads);
  }
  if (gathers_pixels<T>(shape) && is_inside(shape)) {
    gather_pixels(shape, x, static_cast<T*>(scratch), threads);
    return conv_as<T>(gathered(shape), static_cast<const T*>(scratch), packed, y, epilogue,
                      static_cast<std::byte*>(scratch) + gathered_bytes<T>(shape), threads);
  }
  const ConvShape s = normalized(shape);
  if (runs_as_product<T>(s)) {
    GemmEpilogue<T> e;
    e.bias = epilogue.bias, e.addend = epilogue.addend, e.addend_stride = s.out_pixel_stride;
    e.activation = epilogue.activation;
    return gemm_packed_as<T>(product_shape(s), {x, s.in_c, 1}, packed, {y, s.out_pixel_stride}, e, scratch,
                             threads);
  }
  const ConvScratch need = need_of<T>(s);
  conv_functions<T>().run(s, x, packed, y, epilogue, need, scratch_of_thread(s, need),
                          static_cast<std::byte*>(scratch), threads);
}

#define PLIMSOLL_CONV(T)                                                           \
  template size_t conv_packed_bytes<T>(const ConvShape&);                          \
  template void conv_pack<T>(const ConvShape&, const ConvWeights<T>&, void*, int); \
  template ConvScratch conv_scratch<T>(const ConvShape&, int64_t, int64_t);        \
  template int64_t conv_product_scratch_bytes<T>(const ConvShape&, int);           \
  template size_t conv_scratch_bytes<T>(const ConvShape&, int);                    \
  template void conv_as<T>(const ConvShape&, const T*, const void*, T*, const ConvEpilogue<T>&, void*, int)
PLIMSOLL_CONV(float);
PLIMSOLL_CONV(double);
PLIMSOLL_CONV(Float16);
PLIMSOLL_CONV(BFloat16);
#undef PLIMSOLL_CONV

}  // namespace plimsoll::kernels
