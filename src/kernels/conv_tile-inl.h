// The inner kernels of convolution, once per target: kGroups runs of kPixels neighbouring output pixels
// times kVecs vectors of output channels, all in registers. T is what weights, bias, addend and output are in
// memory; the input comes in the type that is computed in.
#if defined(PLIMSOLL_KERNELS_CONV_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_CONV_TILE_INL_H_
#undef PLIMSOLL_KERNELS_CONV_TILE_INL_H_
#else
#define PLIMSOLL_KERNELS_CONV_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/accumulate-inl.h"
#include "kernels/activation-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kMaxConvGroups = 12;

// Neighbouring output pixels of one row. Their input lies in the image, or in a strip that copies the
// image's edge with its padding.
template <class T>
struct ConvGroup {
  const LaneOf<T>* origin = nullptr;  // of the first pixel's first tap, were it in row `first_row`
  int64_t row_stride = 0;
  int64_t first_row = 0;
  int64_t row = 0;  // of the first tap; outside the image it is padding
  int64_t column = 0;
  T* out = nullptr;
  const T* addend = nullptr;
  int64_t pixels = 0;  // to store; the others are computed on whatever lies there
};

template <class T>
struct ConvTile {
  ConvGroup<T> groups[kMaxConvGroups];
  int64_t in_rows = 0, in_columns = 0;
  const LaneOf<T>* zeros = nullptr;  // stands for rows outside the image
  int64_t kernel_h = 0, dilation_h = 0;
  int64_t dilation_w = 1, stride_w = 1;
  int64_t segments = 0;        // runs of contiguous taps in a kernel row
  int64_t segment_stride = 0;  // between them, in the input
  int64_t segment_length = 0;
  int64_t pixel_stride = 0;
  const T* weights = nullptr;
  const T* bias = nullptr;  // at the tile's first channel
  int64_t out_stride = 0;
  int64_t cols = 0;  // channels to store, more than (kVecs - 1) * lanes
  // Where sums go that are yet to be rounded, those of 16 bits: pixel after pixel, whole vectors.
  LaneOf<T>* detour = nullptr;
  bool clamp = false;
  float low = 0, high = 0;
  // Weights that are needed soon. So many tiles fetch a part of them each, kFetched bytes in a step.
  const T* prefetch = nullptr;
  int64_t prefetching = 0;
  int64_t prefetch_step = 0;
  // The same tile again and again, this far along the row. Only where no group meets the image's edge.
  int64_t repeats = 1;
  int64_t in_step = 0, out_step = 0;
};

// p * stride from three registers and x86's scaled addressing, so that many pixels need few registers.
struct PixelStrides {
  int64_t one, three, five;  // bytes
  template <int kPixel>
  HWY_INLINE int64_t at() const {
    if constexpr (kPixel == 0) return 0;
    if constexpr (kPixel == 1) return one;
    if constexpr (kPixel == 2) return one * 2;
    if constexpr (kPixel == 3) return three;
    if constexpr (kPixel == 4) return one * 4;
    if constexpr (kPixel == 5) return five;
    if constexpr (kPixel == 6) return three * 2;
  }
};

template <class T, int kPixel, int kPixels, int kVecs, int kRows>
HWY_INLINE void conv_pixel(VecOf<T> (&acc)[kRows][kVecs], int row, const char* base, const PixelStrides& s,
                           const VecOf<T> (&w)[kVecs]) {
  const TagOf<T> d;
  const VecOf<T> x = hn::Set(d, *reinterpret_cast<const LaneOf<T>*>(base + s.at<kPixel>()));
  HWY_UNROLL(2)
  for (int v = 0; v < kVecs; ++v) accumulate(acc[row][v], x, w[v]);
  if constexpr (kPixel + 1 < kPixels) conv_pixel<T, kPixel + 1, kPixels>(acc, row + 1, base, s, w);
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void conv_step(VecOf<T> (&acc)[kGroups * kPixels][kVecs], const char* const (&base)[kGroups],
                          int64_t offset, const PixelStrides& s, const T* weights) {
  const TagOf<T> d;
  VecOf<T> w[kVecs];
  HWY_UNROLL(2)
  for (int v = 0; v < kVecs; ++v) w[v] = load_aligned(d, weights + v * kLanesOf<T>);
  HWY_UNROLL(12)
  for (int g = 0; g < kGroups; ++g) conv_pixel<T, 0, kPixels>(acc, g * kPixels, base[g] + offset, s, w);
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void conv_segment(VecOf<T> (&acc)[kGroups * kPixels][kVecs], const char* (&base)[kGroups],
                             const PixelStrides& s, const T* HWY_RESTRICT weights, int64_t length,
                             const T*& prefetch) {
  constexpr int64_t kStep = kVecs * kLanesOf<T>;
  int64_t k = 0;
  for (; k + 4 <= length; k += 4) {
    HWY_UNROLL(2)
    for (int64_t i = 0; i < 4 * kFetched; i += 64) fetch_soon(reinterpret_cast<const char*>(prefetch) + i);
    prefetch += 4 * kFetched / sizeof(T);
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i)
      conv_step<T, kGroups, kPixels, kVecs>(acc, base, i * static_cast<int64_t>(sizeof(LaneOf<T>)), s,
                                            weights + i * kStep);
    weights += 4 * kStep;
    HWY_UNROLL(12)
    for (int g = 0; g < kGroups; ++g) base[g] += 4 * sizeof(LaneOf<T>);
  }
  for (; k < length; ++k) {
    conv_step<T, kGroups, kPixels, kVecs>(acc, base, 0, s, weights);
    weights += kStep;
    HWY_UNROLL(12)
    for (int g = 0; g < kGroups; ++g) base[g] += sizeof(LaneOf<T>);
  }
}

// Whether taps of a dilated kernel meet nothing but padding to the left or right, in all groups.
template <class T, int kGroups, int kPixels>
HWY_INLINE bool meets_padding(const ConvTile<T>& t, int64_t segment) {
  if (t.dilation_w == 1) return false;
  bool any = false;
  for (int g = 0; g < kGroups; ++g) {
    const int64_t column = t.groups[g].column + segment * t.dilation_w;
    any |= column + (kPixels - 1) * t.stride_w >= 0 && column < t.in_columns;
  }
  return !any;
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void conv_taps(const ConvTile<T>& t, int64_t shift, const T*& prefetch,
                          VecOf<T> (&acc)[kGroups * kPixels][kVecs]) {
  const auto stride = t.pixel_stride * static_cast<int64_t>(sizeof(LaneOf<T>));
  PixelStrides s{stride, stride * 3, stride * 5};
#if HWY_COMPILER_GCC
  // Opaque, or the compiler spends a register on every multiple.
  __asm__("" : "+r"(s.one), "+r"(s.three), "+r"(s.five));
#endif
  const T* weights = t.weights;
  const int64_t row_elements = t.segments * t.segment_length * kVecs * kLanesOf<T>;
  for (int64_t kh = 0; kh < t.kernel_h; ++kh) {
    const LaneOf<T>* starts[kGroups];
    bool any = false;
    for (int g = 0; g < kGroups; ++g) {
      const ConvGroup<T>& group = t.groups[g];
      const int64_t row = group.row + kh * t.dilation_h;
      const bool inside = row >= 0 && row < t.in_rows;
      any |= inside;
      starts[g] = inside ? group.origin + (row - group.first_row) * group.row_stride + shift : t.zeros;
    }
    if (any) {
      const T* segment_weights = weights;
      for (int64_t segment = 0; segment < t.segments; ++segment) {
        const char* base[kGroups];
        HWY_UNROLL(12)
        for (int g = 0; g < kGroups; ++g)
          base[g] = reinterpret_cast<const char*>(starts[g] + segment * t.segment_stride);
        if (!meets_padding<T, kGroups, kPixels>(t, segment))
          conv_segment<T, kGroups, kPixels, kVecs>(acc, base, s, segment_weights, t.segment_length, prefetch);
        segment_weights += t.segment_length * kVecs * kLanesOf<T>;
      }
    }
    weights += row_elements;
  }
}

// Stores all pixels of all groups. kWhole: all channels too.
template <class T, bool kWhole, bool kAdd, int kGroups, int kPixels, int kVecs>
HWY_INLINE void store_full(const ConvTile<T>& t, int64_t shift,
                           const VecOf<T> (&acc)[kGroups * kPixels][kVecs]) {
  const int64_t last = kWhole ? kLanesOf<T> : t.cols - (kVecs - 1) * kLanesOf<T>;
  const int64_t stride = t.out_stride;
  HWY_UNROLL(12)
  for (int g = 0; g < kGroups; ++g) {
    T* out = t.groups[g].out + shift;
    const T* addend = kAdd ? t.groups[g].addend + shift : nullptr;
    HWY_UNROLL(7)
    for (int pixel = 0; pixel < kPixels; ++pixel, out += stride, addend += kAdd ? stride : 0) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVecs; ++v) {
        const int64_t lanes = v + 1 < kVecs ? kLanesOf<T> : last;
        VecOf<T> y = acc[g * kPixels + pixel][v];
        if (kAdd) y = hn::Add(y, load_lanes(addend + v * kLanesOf<T>, lanes));
        if (kAdd && t.clamp) y = v_clamp(TagOf<T>(), y, t.low, t.high);
        store_lanes(y, out + v * kLanesOf<T>, lanes);
      }
    }
  }
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void store_some(const ConvTile<T>& t, int64_t shift,
                           const VecOf<T> (&acc)[kGroups * kPixels][kVecs]) {
  HWY_UNROLL(28)
  for (int r = 0; r < kGroups * kPixels; ++r) {
    const ConvGroup<T>& group = t.groups[r / kPixels];
    const int64_t pixel = r % kPixels;
    if (pixel >= group.pixels) continue;
    HWY_UNROLL(2)
    for (int v = 0; v < kVecs; ++v) {
      const int64_t at = shift + pixel * t.out_stride + v * kLanesOf<T>;
      const int64_t lanes = t.cols - v * kLanesOf<T>;
      VecOf<T> y = acc[r][v];
      if (group.addend != nullptr) y = hn::Add(y, load_lanes(group.addend + at, lanes));
      if (t.clamp) y = v_clamp(TagOf<T>(), y, t.low, t.high);
      store_lanes(y, group.out + at, lanes);
    }
  }
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void store_detour(const ConvTile<T>& t, const VecOf<T> (&acc)[kGroups * kPixels][kVecs]) {
  HWY_UNROLL(28)
  for (int r = 0; r < kGroups * kPixels; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVecs; ++v)
      hn::StoreU(acc[r][v], TagOf<T>(), t.detour + (r * kVecs + v) * kLanesOf<T>);
  }
}

template <class T, int kGroups, int kPixels, int kVecs>
HWY_INLINE void store_tile(const ConvTile<T>& t, int64_t shift, VecOf<T> (&acc)[kGroups * kPixels][kVecs]) {
  bool full = true;
  for (int g = 0; g < kGroups; ++g) full &= t.groups[g].pixels == kPixels;
  if (!full) return store_some<T, kGroups, kPixels, kVecs>(t, shift, acc);
  const bool whole = t.cols == kVecs * kLanesOf<T>;
  if (t.groups[0].addend != nullptr)
    return whole ? store_full<T, true, true, kGroups, kPixels, kVecs>(t, shift, acc)
                 : store_full<T, false, true, kGroups, kPixels, kVecs>(t, shift, acc);
  if (t.clamp) {
    HWY_UNROLL(28)
    for (int r = 0; r < kGroups * kPixels; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVecs; ++v) acc[r][v] = v_clamp(TagOf<T>(), acc[r][v], t.low, t.high);
    }
  }
  return whole ? store_full<T, true, false, kGroups, kPixels, kVecs>(t, shift, acc)
               : store_full<T, false, false, kGroups, kPixels, kVecs>(t, shift, acc);
}

template <class T, int kGroups, int kPixels, int kVecs>
void conv_tile(const ConvTile<T>& t) {
  constexpr int kRows = kGroups * kPixels;
  const TagOf<T> d;
  VecOf<T> start[kVecs];
  HWY_UNROLL(2)
  for (int v = 0; v < kVecs; ++v)
    start[v] =
        t.bias == nullptr ? hn::Zero(d) : load_lanes(t.bias + v * kLanesOf<T>, t.cols - v * kLanesOf<T>);
  for (int64_t repeat = 0; repeat < t.repeats; ++repeat) {
    const T* prefetch = repeat < t.prefetching ? t.prefetch + repeat * t.prefetch_step : t.weights;
    VecOf<T> acc[kRows][kVecs];
    HWY_UNROLL(28)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kVecs; ++v) acc[r][v] = start[v];
    }
    conv_taps<T, kGroups, kPixels, kVecs>(t, repeat * t.in_step, prefetch, acc);
    if constexpr (kIsHalf<T>) {
      store_detour<T, kGroups, kPixels, kVecs>(t, acc);
    } else {
      store_tile<T, kGroups, kPixels, kVecs>(t, repeat * t.out_step, acc);
    }
  }
}

template <class T>
using ConvTileFunction = void (*)(const ConvTile<T>&);

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
