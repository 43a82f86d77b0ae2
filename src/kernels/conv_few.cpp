#include "kernels/conv_few.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/conv_functions.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_few.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/activation-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

constexpr int kMaxOuts = 4;

// Taps [first, last) along one dimension.
struct Taps {
  int64_t first, last;
};

Taps taps_inside(int64_t start, int64_t kernel, int64_t dilation, int64_t size) {
  const int64_t first = start >= 0 ? 0 : std::min(kernel, ceil_div(-start, dilation));
  const int64_t last = start >= size ? first : std::min(kernel, (size - 1 - start) / dilation + 1);
  return {first, std::max(first, last)};
}

template <class T>
class FewConv {
  using W = LaneOf<T>;

 public:
  FewConv(const ConvShape& shape, const T* x, const W* packed, T* y, const ConvEpilogue<T>& epilogue)
      : s_(shape), x_(x), packed_(packed), y_(y), epilogue_(epilogue) {
    contiguous_ = s_.dilation_w == 1;
    kernel_elements_ = s_.kernel_h * s_.kernel_w * s_.in_c;
  }

  void work_row(int64_t image, int64_t row) const {
    const int64_t out = image * s_.out_image_stride + row * s_.out_row_stride;
    for (int64_t o = 0; o < s_.out_c; o += kMaxOuts) {
      switch (std::min<int64_t>(kMaxOuts, s_.out_c - o)) {
        case 1:
          row_of<1, 4>(image, row, o, out + o);
          break;
        case 2:
          row_of<2, 4>(image, row, o, out + o);
          break;
        case 3:
          row_of<3, 2>(image, row, o, out + o);
          break;
        default:
          row_of<4, 2>(image, row, o, out + o);
          break;
      }
    }
    finish(y_ + out);
  }

 private:
  template <int kOuts, int kPixels>
  void row_of(int64_t image, int64_t row, int64_t channel, int64_t out) const {
    const int64_t top = row * s_.stride_h - s_.pad_top;
    const Taps rows = taps_inside(top, s_.kernel_h, s_.dilation_h, s_.in_h);
    const T* input = x_ + (image * s_.in_h + top) * s_.in_w * s_.in_c;
    const int64_t extent = (s_.kernel_w - 1) * s_.dilation_w + 1;
    int64_t x = 0;
    while (x < s_.out_w) {
      const int64_t left = x * s_.stride_w - s_.pad_left;
      const bool block =
          x + kPixels <= s_.out_w && left >= 0 && left + (kPixels - 1) * s_.stride_w + extent <= s_.in_w;
      const Taps columns = taps_inside(left, s_.kernel_w, s_.dilation_w, s_.in_w);
      T* to = y_ + out + x * s_.out_pixel_stride;
      const T* addend = epilogue_.addend == nullptr ? nullptr : epilogue_.addend + (to - y_);
      if (block) {
        pixels<kOuts, kPixels>(input, left, rows, columns, channel, to, addend);
      } else {
        pixels<kOuts, 1>(input, left, rows, columns, channel, to, addend);
      }
      x += block ? kPixels : 1;
    }
  }

  template <int kOuts, int kPixels>
  void pixels(const T* input, int64_t left, Taps rows, Taps columns, int64_t channel, T* to,
              const T* addend) const {
    VecOf<T> acc[kPixels][kOuts];
    for (auto& pixel : acc) {
      for (VecOf<T>& sum : pixel) sum = hn::Zero(TagOf<T>());
    }
    const int64_t segments =
        contiguous_ ? std::min<int64_t>(1, columns.last - columns.first) : columns.last - columns.first;
    const int64_t length = contiguous_ ? (columns.last - columns.first) * s_.in_c : s_.in_c;
    for (int64_t kh = rows.first; kh < rows.last; ++kh) {
      const T* x = input + (kh * s_.dilation_h * s_.in_w + left + columns.first * s_.dilation_w) * s_.in_c;
      const W* w = packed_ + channel * kernel_elements_ + (kh * s_.kernel_w + columns.first) * s_.in_c;
      for (int64_t segment = 0; segment < segments; ++segment) {
        dot<kOuts, kPixels>(x, w, length, acc);
        x += s_.dilation_w * s_.in_c;
        w += s_.in_c;
      }
    }
    for (int p = 0; p < kPixels; ++p) {
      for (int o = 0; o < kOuts; ++o) {
        W sum = hn::GetLane(hn::SumOfLanes(TagOf<T>(), acc[p][o]));
        if (epilogue_.bias != nullptr) sum += static_cast<W>(epilogue_.bias[channel + o]);
        if (addend != nullptr) sum += static_cast<W>(addend[p * s_.out_pixel_stride + o]);
        if constexpr (kIsHalf<T>) sum = activated(sum);
        to[p * s_.out_pixel_stride + o] = static_cast<T>(sum);
      }
    }
  }

  template <int kOuts, int kPixels>
  HWY_INLINE void dot(const T* x, const W* w, int64_t length, VecOf<T> (&acc)[kPixels][kOuts]) const {
    const int64_t stride = s_.stride_w * s_.in_c, kernel_elements = kernel_elements_;
    int64_t k = 0;
    for (; k + kLanesOf<T> <= length; k += kLanesOf<T>)
      dot_step<kOuts, kPixels>(x + k, w + k, stride, kernel_elements,
                               std::integral_constant<int64_t, kLanesOf<T>>(), acc);
    if (k < length) dot_step<kOuts, kPixels>(x + k, w + k, stride, kernel_elements, length - k, acc);
  }

  template <int kOuts, int kPixels, class Lanes>
  static HWY_INLINE void dot_step(const T* x, const W* w, int64_t stride, int64_t kernel_elements,
                                  Lanes lanes, VecOf<T> (&acc)[kPixels][kOuts]) {
    VecOf<T> weights[kOuts];
    HWY_UNROLL(4)
    for (int o = 0; o < kOuts; ++o) weights[o] = load_lanes(w + o * kernel_elements, lanes);
    HWY_UNROLL(4)
    for (int p = 0; p < kPixels; ++p) {
      const VecOf<T> v = load_lanes(x + p * stride, lanes);
      HWY_UNROLL(4)
      for (int o = 0; o < kOuts; ++o) acc[p][o] = hn::MulAdd(v, weights[o], acc[p][o]);
    }
  }

  // Of a sum that is about to be rounded.
  HWY_NOINLINE W activated(W sum) const {
    with_activation(TagOf<T>(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      sum = hn::GetLane(activation(hn::Set(TagOf<T>(), sum)));
    });
    return sum;
  }

  void finish(T* out) const {
    if (kIsHalf<T> || epilogue_.activation.kind == ActivationKind::kNone) return;
    const bool dense = s_.out_pixel_stride == s_.out_c;
    const int64_t runs = dense ? 1 : s_.out_w, length = dense ? s_.out_w * s_.out_c : s_.out_c;
    with_activation(TagOf<T>(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      for (int64_t run = 0; run < runs; ++run) {
        T* to = out + run * s_.out_pixel_stride;
        for (int64_t i = 0; i < length; i += kLanesOf<T>)
          store_lanes(activation(load_lanes(to + i, length - i)), to + i, length - i);
      }
    });
  }

  const ConvShape& s_;
  const T* x_;
  const W* packed_;
  T* y_;
  const ConvEpilogue<T>& epilogue_;
  bool contiguous_ = false;
  int64_t kernel_elements_ = 0;
};

template <class T>
void run_few(const ConvShape& s, const T* x, const LaneOf<T>* packed, T* y, const ConvEpilogue<T>& epilogue,
             int threads) {
  const FewConv<T> job(s, x, packed, y, epilogue);
  parallel_for(threads, s.batch * s.out_h,
               [&](int64_t task) { job.work_row(task / s.out_h, task % s.out_h); });
}

}  // namespace

void ConvFewF32(const ConvShape& s, const float* x, const float* packed, float* y,
                const ConvEpilogue<float>& epilogue, int threads) {
  run_few(s, x, packed, y, epilogue, threads);
}
void ConvFewF64(const ConvShape& s, const double* x, const double* packed, double* y,
                const ConvEpilogue<double>& epilogue, int threads) {
  run_few(s, x, packed, y, epilogue, threads);
}
void ConvFewF16(const ConvShape& s, const Float16* x, const float* packed, Float16* y,
                const ConvEpilogue<Float16>& epilogue, int threads) {
  run_few(s, x, packed, y, epilogue, threads);
}
void ConvFewBF16(const ConvShape& s, const BFloat16* x, const float* packed, BFloat16* y,
                 const ConvEpilogue<BFloat16>& epilogue, int threads) {
  run_few(s, x, packed, y, epilogue, threads);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(ConvFewF32);
HWY_EXPORT(ConvFewF64);
HWY_EXPORT(ConvFewF16);
HWY_EXPORT(ConvFewBF16);

bool is_few_channel_conv(const ConvShape& s) {
  return s.groups == 1 && s.out_c < 8 && s.in_c >= 16;
}

template <class T>
size_t conv_few_packed_bytes(const ConvShape& s) {
  const int64_t elements = checked_mul(checked_mul(s.kernel_h, s.kernel_w), checked_mul(s.in_c, s.out_c));
  return static_cast<size_t>(round_up(checked_mul(elements, sizeof(LaneOf<T>)), 64));
}

template <class T>
void conv_few_pack(const ConvShape& s, const ConvWeights<T>& w, LaneOf<T>* packed) {
  for (int64_t o = 0; o < s.out_c; ++o) {
    for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
        for (int64_t c = 0; c < s.in_c; ++c) *packed++ = scaled_weight(w, o, c, kh, kw);
      }
    }
  }
}

template <class T>
void conv_few(const ConvShape& shape, const T* x, const LaneOf<T>* packed, T* y,
              const ConvEpilogue<T>& epilogue, int threads) {
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(ConvFewF32)(shape, x, packed, y, epilogue, threads);
  if constexpr (std::is_same_v<T, double>)
    HWY_DYNAMIC_DISPATCH(ConvFewF64)(shape, x, packed, y, epilogue, threads);
  if constexpr (std::is_same_v<T, Float16>)
    HWY_DYNAMIC_DISPATCH(ConvFewF16)(shape, x, packed, y, epilogue, threads);
  if constexpr (std::is_same_v<T, BFloat16>)
    HWY_DYNAMIC_DISPATCH(ConvFewBF16)(shape, x, packed, y, epilogue, threads);
}

#define PLIMSOLL_CONV_FEW(T)                                                           \
  template size_t conv_few_packed_bytes<T>(const ConvShape&);                          \
  template void conv_few_pack<T>(const ConvShape&, const ConvWeights<T>&, LaneOf<T>*); \
  template void conv_few<T>(const ConvShape&, const T*, const LaneOf<T>*, T*, const ConvEpilogue<T>&, int)
PLIMSOLL_CONV_FEW(float);
PLIMSOLL_CONV_FEW(double);
PLIMSOLL_CONV_FEW(Float16);
PLIMSOLL_CONV_FEW(BFloat16);
#undef PLIMSOLL_CONV_FEW

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
