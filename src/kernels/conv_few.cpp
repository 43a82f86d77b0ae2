#include "kernels/conv_few.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
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

class FewConv {
 public:
  FewConv(const ConvShape& shape, const float* x, const float* packed, float* y, const ConvEpilogue& epilogue)
      : s_(shape), x_(x), packed_(packed), y_(y), epilogue_(epilogue) {
    contiguous_ = s_.dilation_w == 1;
    kernel_floats_ = s_.kernel_h * s_.kernel_w * s_.in_c;
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
    const float* input = x_ + (image * s_.in_h + top) * s_.in_w * s_.in_c;
    const int64_t extent = (s_.kernel_w - 1) * s_.dilation_w + 1;
    int64_t x = 0;
    while (x < s_.out_w) {
      const int64_t left = x * s_.stride_w - s_.pad_left;
      const bool block =
          x + kPixels <= s_.out_w && left >= 0 && left + (kPixels - 1) * s_.stride_w + extent <= s_.in_w;
      const Taps columns = taps_inside(left, s_.kernel_w, s_.dilation_w, s_.in_w);
      float* to = y_ + out + x * s_.out_pixel_stride;
      const float* addend = epilogue_.addend == nullptr ? nullptr : epilogue_.addend + (to - y_);
      if (block) {
        pixels<kOuts, kPixels>(input, left, rows, columns, channel, to, addend);
      } else {
        pixels<kOuts, 1>(input, left, rows, columns, channel, to, addend);
      }
      x += block ? kPixels : 1;
    }
  }

  template <int kOuts, int kPixels>
  void pixels(const float* input, int64_t left, Taps rows, Taps columns, int64_t channel, float* to,
              const float* addend) const {
    FloatVec acc[kPixels][kOuts];
    for (auto& pixel : acc) {
      for (FloatVec& sum : pixel) sum = hn::Zero(FloatTag());
    }
    const int64_t segments =
        contiguous_ ? std::min<int64_t>(1, columns.last - columns.first) : columns.last - columns.first;
    const int64_t length = contiguous_ ? (columns.last - columns.first) * s_.in_c : s_.in_c;
    for (int64_t kh = rows.first; kh < rows.last; ++kh) {
      const float* x =
          input + (kh * s_.dilation_h * s_.in_w + left + columns.first * s_.dilation_w) * s_.in_c;
      const float* w = packed_ + channel * kernel_floats_ + (kh * s_.kernel_w + columns.first) * s_.in_c;
      for (int64_t segment = 0; segment < segments; ++segment) {
        dot<kOuts, kPixels>(x, w, length, acc);
        x += s_.dilation_w * s_.in_c;
        w += s_.in_c;
      }
    }
    for (int p = 0; p < kPixels; ++p) {
      for (int o = 0; o < kOuts; ++o) {
        float sum = hn::GetLane(hn::SumOfLanes(FloatTag(), acc[p][o]));
        if (epilogue_.bias != nullptr) sum += epilogue_.bias[channel + o];
        if (addend != nullptr) sum += addend[p * s_.out_pixel_stride + o];
        to[p * s_.out_pixel_stride + o] = sum;
      }
    }
  }

  template <int kOuts, int kPixels>
  HWY_INLINE void dot(const float* x, const float* w, int64_t length, FloatVec (&acc)[kPixels][kOuts]) const {
    const int64_t stride = s_.stride_w * s_.in_c, kernel_floats = kernel_floats_;
    int64_t k = 0;
    for (; k + kFloatLanes <= length; k += kFloatLanes)
      dot_step<kOuts, kPixels>(x + k, w + k, stride, kernel_floats,
                               std::integral_constant<int64_t, kFloatLanes>(), acc);
    if (k < length) dot_step<kOuts, kPixels>(x + k, w + k, stride, kernel_floats, length - k, acc);
  }

  template <int kOuts, int kPixels, class Lanes>
  static HWY_INLINE void dot_step(const float* x, const float* w, int64_t stride, int64_t kernel_floats,
                                  Lanes lanes, FloatVec (&acc)[kPixels][kOuts]) {
    FloatVec weights[kOuts];
    HWY_UNROLL(4)
    for (int o = 0; o < kOuts; ++o) weights[o] = load_lanes(w + o * kernel_floats, lanes);
    HWY_UNROLL(4)
    for (int p = 0; p < kPixels; ++p) {
      const FloatVec v = load_lanes(x + p * stride, lanes);
      HWY_UNROLL(4)
      for (int o = 0; o < kOuts; ++o) acc[p][o] = hn::MulAdd(v, weights[o], acc[p][o]);
    }
  }

  void finish(float* out) const {
    if (epilogue_.activation.kind == ActivationKind::kNone) return;
    const bool dense = s_.out_pixel_stride == s_.out_c;
    const int64_t runs = dense ? 1 : s_.out_w, length = dense ? s_.out_w * s_.out_c : s_.out_c;
    with_activation(FloatTag(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      for (int64_t run = 0; run < runs; ++run) {
        float* to = out + run * s_.out_pixel_stride;
        for (int64_t i = 0; i < length; i += kFloatLanes)
          store_lanes(activation(load_lanes(to + i, length - i)), to + i, length - i);
      }
    });
  }

  const ConvShape& s_;
  const float* x_;
  const float* packed_;
  float* y_;
  const ConvEpilogue& epilogue_;
  bool contiguous_ = false;
  int64_t kernel_floats_ = 0;
};

}  // namespace

void ConvFewRun(const ConvShape& s, const float* x, const float* packed, float* y,
                const ConvEpilogue& epilogue, int threads) {
  const FewConv job(s, x, packed, y, epilogue);
  parallel_for(threads, s.batch * s.out_h,
               [&](int64_t task) { job.work_row(task / s.out_h, task % s.out_h); });
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(ConvFewRun);

bool is_few_channel_conv(const ConvShape& s) {
  return s.groups == 1 && s.out_c < 8 && s.in_c >= 16;
}

size_t conv_few_packed_bytes(const ConvShape& s) {
  const int64_t floats = checked_mul(checked_mul(s.kernel_h, s.kernel_w), checked_mul(s.in_c, s.out_c));
  return static_cast<size_t>(round_up(checked_mul(floats, sizeof(float)), 64));
}

void conv_few_pack(const ConvShape& s, const ConvWeights& w, float* packed) {
  const char* data = static_cast<const char*>(w.data);
  for (int64_t o = 0; o < s.out_c; ++o) {
    const int64_t out = o / w.block * w.block_stride + o % w.block * w.out_stride;
    for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
        for (int64_t c = 0; c < s.in_c; ++c) {
          const int64_t from = out + c * w.in_stride + kh * w.row_stride + kw * w.column_stride;
          float value;
          std::memcpy(&value, data + from * 4, sizeof value);
          *packed++ = w.scale == nullptr ? value : value * w.scale[o];
        }
      }
    }
  }
}

void conv_few(const ConvShape& shape, const float* x, const float* packed, float* y,
              const ConvEpilogue& epilogue, int threads) {
  HWY_DYNAMIC_DISPATCH(ConvFewRun)(shape, x, packed, y, epilogue, threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
