// Depthwise convolutions of one element type, once per target: depthwise_<type>.cpp instantiates this.
#if defined(PLIMSOLL_KERNELS_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_DEPTHWISE_INL_H_
#undef PLIMSOLL_KERNELS_DEPTHWISE_INL_H_
#else
#define PLIMSOLL_KERNELS_DEPTHWISE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/activation-inl.h"
#include "kernels/conv_functions.h"
#include "kernels/depthwise_functions.h"
#include "kernels/lanes-inl.h"
#include "kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Neighbouring output pixels of one row that are computed together.
constexpr int kTilePixels = 7;

// One tile: kTilePixels pixels of a row, channels [first_channel, last_channel).
template <class T>
struct DepthwiseTile {
  const LaneOf<T>* weights = nullptr;  // of the first kernel row that meets the image
  int64_t rows = 0;                    // kernel rows that do
  int64_t channels = 0, padded_channels = 0;
  int64_t first_channel = 0, last_channel = 0;
  const T* row = nullptr;  // the input row of the first of them
  int64_t row_stride = 0;
  int64_t left = 0;  // input column of the first pixel's first tap, may be outside
  int64_t in_w = 0;
  int64_t kernel_w = 0, stride_w = 0, dilation_w = 0;
  T* out = nullptr;
  const T* bias = nullptr;
  const T* addend = nullptr;
  int64_t pixels = 0;  // to store
  bool clamp = false;
  float low = 0, high = 0;
  Activation activation;  // of 16 bits, which are rounded once; none otherwise
};

// Once for all kernels: activations are large.
template <class T>
HWY_NOINLINE void store_activated(const DepthwiseTile<T>& t, const VecOf<T> (&acc)[kTilePixels], T* out,
                                  int64_t lanes) {
  with_activation(TagOf<T>(), t.activation, [&](auto activation) HWY_ATTR {
    for (int64_t r = 0; r < t.pixels; ++r) store_lanes(activation(acc[r]), out + r * t.channels, lanes);
  });
}

template <class T, class Lanes>
HWY_INLINE void store_pixels(const DepthwiseTile<T>& t, VecOf<T> (&acc)[kTilePixels], int64_t c,
                             Lanes lanes) {
  T* out = t.out + c;
  const int64_t stride = t.channels;
  if (t.addend != nullptr) {
    HWY_UNROLL(7)
    for (int r = 0; r < kTilePixels; ++r) {
      if (r < t.pixels) acc[r] = hn::Add(acc[r], load_lanes(t.addend + r * stride + c, lanes));
    }
  }
  if (t.clamp) {
    HWY_UNROLL(7)
    for (int r = 0; r < kTilePixels; ++r) acc[r] = v_clamp(TagOf<T>(), acc[r], t.low, t.high);
  }
  if constexpr (kIsHalf<T>) {
    if (t.activation.kind != ActivationKind::kNone) return store_activated<T>(t, acc, out, lanes);
  }
  if (t.pixels == kTilePixels) {
    HWY_UNROLL(7)
    for (int r = 0; r < kTilePixels; ++r, out += stride) store_lanes(acc[r], out, lanes);
    return;
  }
  HWY_UNROLL(7)
  for (int r = 0; r < kTilePixels; ++r) {
    if (r < t.pixels) store_lanes(acc[r], out + r * stride, lanes);
  }
}

template <class T, class Lanes>
HWY_INLINE void start_pixels(const DepthwiseTile<T>& t, VecOf<T> (&acc)[kTilePixels], int64_t c,
                             Lanes lanes) {
  const VecOf<T> start = t.bias == nullptr ? hn::Zero(TagOf<T>()) : load_lanes(t.bias + c, lanes);
  HWY_UNROLL(7)
  for (int r = 0; r < kTilePixels; ++r) acc[r] = start;
}

// Columns of a tile's input that lie inside the image.
struct Columns {
  int first, last;
};

// One kernel row: every input column is loaded once and meets each pixel that it belongs to.
template <class T, int kWidth, int kStride, bool kInside, class Lanes>
HWY_INLINE void depthwise_row(VecOf<T> (&acc)[kTilePixels], const LaneOf<T>* weights, int64_t weight_stride,
                              const T* x, int64_t stride, Columns inside, Lanes lanes) {
  constexpr int kColumns = (kTilePixels - 1) * kStride + kWidth;
  VecOf<T> w[kWidth];
  HWY_UNROLL(7)
  for (int k = 0; k < kWidth; ++k) w[k] = hn::Load(TagOf<T>(), weights + k * weight_stride);
  HWY_UNROLL(19)
  for (int column = 0; column < kColumns; ++column, x += stride) {
    if (!kInside && (column < inside.first || column >= inside.last)) continue;
    const VecOf<T> v = load_lanes(x, lanes);
    HWY_UNROLL(7)
    for (int r = 0; r < kTilePixels; ++r) {
      const int tap = column - r * kStride;
      if (tap >= 0 && tap < kWidth) acc[r] = hn::MulAdd(v, w[tap], acc[r]);
    }
  }
}

template <class T, int kWidth, int kStride, bool kInside, class Lanes>
HWY_INLINE void depthwise_channels(const DepthwiseTile<T>& t, Columns inside, int64_t c, Lanes lanes) {
  VecOf<T> acc[kTilePixels];
  start_pixels(t, acc, c, lanes);
  const LaneOf<T>* weights = t.weights + c;
  const T* x = t.row + t.left * t.channels + c;
  for (int64_t row = 0; row < t.rows; ++row) {
    depthwise_row<T, kWidth, kStride, kInside>(acc, weights, t.padded_channels, x, t.channels, inside, lanes);
    weights += kWidth * t.padded_channels;
    x += t.row_stride;
  }
  store_pixels(t, acc, c, lanes);
}

template <class T, int kWidth, int kStride, bool kInside>
void depthwise_tile(const DepthwiseTile<T>& t) {
  constexpr int64_t kColumns = (kTilePixels - 1) * kStride + kWidth;
  const Columns inside{static_cast<int>(std::clamp<int64_t>(-t.left, 0, kColumns)),
                       static_cast<int>(std::clamp<int64_t>(t.in_w - t.left, 0, kColumns))};
  int64_t c = t.first_channel;
  for (; c + kLanesOf<T> <= t.last_channel; c += kLanesOf<T>)
    depthwise_channels<T, kWidth, kStride, kInside>(t, inside, c,
                                                    std::integral_constant<int64_t, kLanesOf<T>>());
  if (c < t.last_channel) depthwise_channels<T, kWidth, kStride, kInside>(t, inside, c, t.last_channel - c);
}

// Any kernel, tap by tap.
template <class T>
void depthwise_any_tile(const DepthwiseTile<T>& t) {
  for (int64_t c = t.first_channel; c < t.last_channel; c += kLanesOf<T>) {
    const int64_t lanes = std::min(kLanesOf<T>, t.last_channel - c);
    VecOf<T> acc[kTilePixels];
    start_pixels(t, acc, c, lanes);
    const LaneOf<T>* weights = t.weights + c;
    for (int64_t row = 0; row < t.rows; ++row) {
      const T* x = t.row + row * t.row_stride + c;
      for (int64_t k = 0; k < t.kernel_w; ++k, weights += t.padded_channels) {
        const VecOf<T> w = hn::Load(TagOf<T>(), weights);
        HWY_UNROLL(7)
        for (int r = 0; r < kTilePixels; ++r) {
          const int64_t column = t.left + r * t.stride_w + k * t.dilation_w;
          if (column < 0 || column >= t.in_w) continue;
          acc[r] = hn::MulAdd(load_lanes(x + column * t.channels, lanes), w, acc[r]);
        }
      }
    }
    store_pixels(t, acc, c, lanes);
  }
}

template <class T>
using DepthwiseFunction = void (*)(const DepthwiseTile<T>&);
template <class T>
struct DepthwiseKernel {
  int64_t width, stride;
  DepthwiseFunction<T> inside, edge;
};
template <class T, int kWidth, int kStride>
constexpr DepthwiseKernel<T> make_kernel() {
  return {kWidth, kStride, &depthwise_tile<T, kWidth, kStride, true>,
          &depthwise_tile<T, kWidth, kStride, false>};
}
template <class T>
constexpr DepthwiseKernel<T> kKernels[] = {make_kernel<T, 3, 1>(), make_kernel<T, 3, 2>(),
                                           make_kernel<T, 5, 1>(), make_kernel<T, 5, 2>(),
                                           make_kernel<T, 7, 1>()};

template <class T>
const DepthwiseKernel<T>* find_kernel(const ConvShape& s) {
  for (const DepthwiseKernel<T>& k : kKernels<T>) {
    if (k.width == s.kernel_w && k.stride == s.stride_w && s.dilation_w == 1) return &k;
  }
  return nullptr;
}

template <class T>
int64_t padded(int64_t channels) {
  return round_up(channels, kLanesOf<T>);
}

// Input rows of a block of channels stay in the first-level cache from one output row to the next.
constexpr int64_t kRowsBytes = 24 << 10, kLeastBlock = 128;

template <class T>
int64_t channel_block(const ConvShape& s) {
  const int64_t rows = std::min(s.in_h, s.kernel_h + s.stride_h);
  const int64_t bytes = std::max<int64_t>(1, rows * s.in_w * static_cast<int64_t>(sizeof(T)));
  const int64_t most = std::max(kLeastBlock, kRowsBytes / bytes / kLanesOf<T> * kLanesOf<T>);
  const int64_t blocks = ceil_div(s.in_c, most);
  return round_up(ceil_div(s.in_c, blocks), kLanesOf<T>);
}

template <class T>
class Depthwise {
 public:
  Depthwise(const ConvShape& shape, const T* x, const LaneOf<T>* packed, T* y,
            const ConvEpilogue<T>& epilogue)
      : s_(shape), x_(x), packed_(packed), y_(y), epilogue_(epilogue), kernel_(find_kernel<T>(shape)) {
    const ActivationKind kind = epilogue.activation.kind;
    common_.channels = s_.in_c;
    common_.padded_channels = padded<T>(s_.in_c);
    common_.row_stride = s_.dilation_h * s_.in_w * s_.in_c;
    common_.in_w = s_.in_w;
    common_.kernel_w = s_.kernel_w, common_.stride_w = s_.stride_w, common_.dilation_w = s_.dilation_w;
    common_.bias = epilogue.bias;
    common_.clamp = kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
    common_.low = kind == ActivationKind::kClip ? epilogue.activation.a : 0;
    common_.high = kind == ActivationKind::kClip ? epilogue.activation.b : HUGE_VALF;
    const bool any = kind != ActivationKind::kNone && !common_.clamp;
    finish_ = any && !kIsHalf<T>;
    if (any && kIsHalf<T>) common_.activation = epilogue.activation;
  }

  // Rows [first, last) of the output, counted through the images, of channels [first_channel, last_channel).
  void work(int64_t first, int64_t last, int64_t first_channel, int64_t last_channel) const {
    const int64_t block = channel_block<T>(s_);
    for (int64_t c = first_channel; c < last_channel; c += block) {
      for (int64_t row = first; row < last; ++row)
        work_row(row / s_.out_h, row % s_.out_h, c, std::min(c + block, last_channel));
    }
  }

 private:
  void work_row(int64_t image, int64_t row, int64_t first_channel, int64_t last_channel) const {
    DepthwiseTile<T> tile = common_;
    tile.first_channel = first_channel;
    tile.last_channel = last_channel;
    const int64_t top = row * s_.stride_h - s_.pad_top;
    const int64_t first = top >= 0 ? 0 : std::min(s_.kernel_h, ceil_div(-top, s_.dilation_h));
    const int64_t last = std::clamp<int64_t>(ceil_div(s_.in_h - top, s_.dilation_h), first, s_.kernel_h);
    tile.rows = last - first;
    tile.weights = packed_ + first * s_.kernel_w * tile.padded_channels;
    tile.row = x_ + (image * s_.in_h + top + first * s_.dilation_h) * s_.in_w * s_.in_c;
    const int64_t reach = (kTilePixels - 1) * s_.stride_w + s_.kernel_w;
    for (int64_t x = 0; x < s_.out_w; x += kTilePixels) {
      tile.left = x * s_.stride_w - s_.pad_left;
      const bool inside = tile.left >= 0 && tile.left + reach <= s_.in_w;
      tile.pixels = std::min<int64_t>(kTilePixels, s_.out_w - x);
      const int64_t out = ((image * s_.out_h + row) * s_.out_w + x) * s_.in_c;
      tile.out = y_ + out;
      tile.addend = epilogue_.addend == nullptr ? nullptr : epilogue_.addend + out;
      (kernel_ == nullptr ? &depthwise_any_tile<T> : inside ? kernel_->inside : kernel_->edge)(tile);
      if (finish_) finish(tile);
    }
  }

  // Activations too large to repeat in every kernel, while the tile is still in the first-level cache.
  void finish(const DepthwiseTile<T>& t) const {
    with_activation(TagOf<T>(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      activate_rows<T>(t.out + t.first_channel, t.pixels, t.channels, t.last_channel - t.first_channel,
                       activation);
    });
  }

  const ConvShape& s_;
  const T* x_;
  const LaneOf<T>* packed_;
  T* y_;
  const ConvEpilogue<T>& epilogue_;
  const DepthwiseKernel<T>* kernel_;
  DepthwiseTile<T> common_;
  bool finish_ = false;
};

template <class T>
size_t packed_bytes(const ConvShape& s) {
  const int64_t taps = checked_mul(s.kernel_h, s.kernel_w);
  return static_cast<size_t>(
      round_up(checked_mul(checked_mul(taps, padded<T>(s.in_c)), sizeof(LaneOf<T>)), 64));
}

template <class T>
void pack(const ConvShape& s, const ConvWeights<T>& w, LaneOf<T>* packed) {
  const int64_t width = padded<T>(s.in_c);
  for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
    for (int64_t kw = 0; kw < s.kernel_w; ++kw, packed += width) {
      for (int64_t c = 0; c < s.in_c; ++c) packed[c] = scaled_weight(w, c, 0, kh, kw);
      std::fill(packed + s.in_c, packed + width, LaneOf<T>{0});
    }
  }
}

template <class T>
void run(const ConvShape& s, const T* x, const LaneOf<T>* packed, T* y, const ConvEpilogue<T>& epilogue,
         int threads) {
  const Depthwise<T> job(s, x, packed, y, epilogue);
  const int64_t rows = s.batch * s.out_h, vectors = ceil_div(s.in_c, kLanesOf<T>);
  // Few rows come out uneven: then vectors of channels are shared out.
  if (ceil_div(vectors, threads) * rows < ceil_div(rows, threads) * vectors) {
    parallel_for(threads, threads, [&](int64_t worker) {
      job.work(0, rows, vectors * worker / threads * kLanesOf<T>,
               std::min(s.in_c, vectors * (worker + 1) / threads * kLanesOf<T>));
    });
    return;
  }
  const int64_t workers = std::min<int64_t>(threads, rows);
  parallel_for(threads, workers, [&](int64_t worker) {
    job.work(rows * worker / workers, rows * (worker + 1) / workers, 0, s.in_c);
  });
}

template <class T>
const DepthwiseFunctions<T>* depthwise_table() {
  static constexpr DepthwiseFunctions<T> kTable = {&packed_bytes<T>, &pack<T>, &run<T>};
  return &kTable;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
