#include "kernels/depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/activation-inl.h"
#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Neighbouring output pixels of one row that are computed together.
constexpr int kTilePixels = 7;

// One tile: kTilePixels pixels, all channels.
struct DepthwiseTile {
  const float* weights = nullptr;  // of the first kernel row that meets the image
  int64_t rows = 0;                // kernel rows that do
  int64_t channels = 0, padded_channels = 0;
  const float* const* taps = nullptr;  // inputs: per kernel row and column (or tap and pixel); or else
  const float* first = nullptr;        // the first input, and the way to its neighbours
  int64_t row_stride = 0;
  int64_t kernel_w = 0;
  float* out = nullptr;
  const float* bias = nullptr;
  const float* addend = nullptr;
  int64_t pixels = 0;  // to store
  bool clamp = false;
  float low = 0, high = 0;
};

HWY_INLINE void store_pixels(const DepthwiseTile& t, FloatVec (&acc)[kTilePixels], int64_t c, int64_t lanes) {
  HWY_UNROLL(7)
  for (int r = 0; r < kTilePixels; ++r) {
    if (r >= t.pixels) break;
    const int64_t at = r * t.channels + c;
    FloatVec y = acc[r];
    if (t.addend != nullptr) y = hn::Add(y, load_lanes(t.addend + at, lanes));
    if (t.clamp) y = clamp(FloatTag(), y, t.low, t.high);
    store_lanes(y, t.out + at, lanes);
  }
}

HWY_INLINE void start_pixels(const DepthwiseTile& t, FloatVec (&acc)[kTilePixels], int64_t c, int64_t lanes) {
  const FloatVec start = t.bias == nullptr ? hn::Zero(FloatTag()) : load_lanes(t.bias + c, lanes);
  HWY_UNROLL(7)
  for (int r = 0; r < kTilePixels; ++r) acc[r] = start;
}

// One kernel row: every input column is loaded once and meets each pixel that it belongs to.
template <int kWidth, int kStride, class Load>
HWY_INLINE void depthwise_row(FloatVec (&acc)[kTilePixels], const float* weights, int64_t weight_stride,
                              const Load& load) {
  constexpr int kColumns = (kTilePixels - 1) * kStride + kWidth;
  FloatVec w[kWidth];
  HWY_UNROLL(7)
  for (int k = 0; k < kWidth; ++k) w[k] = hn::Load(FloatTag(), weights + k * weight_stride);
  HWY_UNROLL(19)
  for (int column = 0; column < kColumns; ++column) {
    const FloatVec x = load(column);
    HWY_UNROLL(7)
    for (int r = 0; r < kTilePixels; ++r) {
      const int tap = column - r * kStride;
      if (tap >= 0 && tap < kWidth) acc[r] = hn::MulAdd(x, w[tap], acc[r]);
    }
  }
}

template <int kWidth, int kStride, bool kInside, class Lanes>
HWY_INLINE void depthwise_channels(const DepthwiseTile& t, int64_t c, Lanes lanes) {
  constexpr int kColumns = (kTilePixels - 1) * kStride + kWidth;
  FloatVec acc[kTilePixels];
  start_pixels(t, acc, c, lanes);
  const float* weights = t.weights + c;
  const float* const* taps = t.taps;
  const float* first = t.first + c;
  const int64_t channels = t.channels;
  for (int64_t row = 0; row < t.rows; ++row) {
    depthwise_row<kWidth, kStride>(acc, weights, t.padded_channels, [&](int column) HWY_ATTR {
      return load_lanes(kInside ? first + column * channels : taps[column] + c, lanes);
    });
    weights += kWidth * t.padded_channels;
    taps += kColumns;
    first += t.row_stride;
  }
  store_pixels(t, acc, c, lanes);
}

template <int kWidth, int kStride, bool kInside>
void depthwise_tile(const DepthwiseTile& t) {
  int64_t c = 0;
  for (; c + kFloatLanes <= t.channels; c += kFloatLanes)
    depthwise_channels<kWidth, kStride, kInside>(t, c, std::integral_constant<int64_t, kFloatLanes>());
  if (c < t.channels) depthwise_channels<kWidth, kStride, kInside>(t, c, t.channels - c);
}

// Any kernel: an input for every tap and pixel.
void depthwise_any_tile(const DepthwiseTile& t) {
  for (int64_t c = 0; c < t.channels; c += kFloatLanes) {
    const int64_t lanes = std::min(kFloatLanes, t.channels - c);
    FloatVec acc[kTilePixels];
    start_pixels(t, acc, c, lanes);
    const float* const* taps = t.taps;
    const float* weights = t.weights + c;
    for (int64_t tap = 0; tap < t.rows * t.kernel_w; ++tap) {
      const FloatVec w = hn::Load(FloatTag(), weights);
      HWY_UNROLL(7)
      for (int r = 0; r < kTilePixels; ++r) acc[r] = hn::MulAdd(load_lanes(taps[r] + c, lanes), w, acc[r]);
      taps += kTilePixels;
      weights += t.padded_channels;
    }
    store_pixels(t, acc, c, lanes);
  }
}

using DepthwiseFunction = void (*)(const DepthwiseTile&);
struct DepthwiseKernel {
  int64_t width, stride;
  DepthwiseFunction inside, edge;
};
template <int kWidth, int kStride>
constexpr DepthwiseKernel make_kernel() {
  return {kWidth, kStride, &depthwise_tile<kWidth, kStride, true>, &depthwise_tile<kWidth, kStride, false>};
}
constexpr DepthwiseKernel kKernels[] = {make_kernel<3, 1>(), make_kernel<3, 2>(), make_kernel<5, 1>(),
                                        make_kernel<5, 2>(), make_kernel<7, 1>()};

const DepthwiseKernel* find_kernel(const ConvShape& s) {
  for (const DepthwiseKernel& k : kKernels) {
    if (k.width == s.kernel_w && k.stride == s.stride_w && s.dilation_w == 1) return &k;
  }
  return nullptr;
}

int64_t padded(int64_t channels) {
  return round_up(channels, kFloatLanes);
}

// Inputs per kernel row that a tile's table lists.
int64_t table_columns(const ConvShape& s) {
  return find_kernel(s) != nullptr ? (kTilePixels - 1) * s.stride_w + s.kernel_w
                                   : checked_mul(s.kernel_w, int64_t{kTilePixels});
}

int64_t scratch_of_thread(const ConvShape& s) {
  const int64_t table = checked_mul(checked_mul(s.kernel_h, table_columns(s)), sizeof(float*));
  return checked_add(round_up(table, 64), round_up(checked_mul(s.in_c, sizeof(float)), 64));
}

class Depthwise {
 public:
  Depthwise(const ConvShape& shape, const float* x, const float* packed, float* y,
            const ConvEpilogue& epilogue)
      : s_(shape), x_(x), packed_(packed), y_(y), epilogue_(epilogue), kernel_(find_kernel(shape)) {
    const ActivationKind kind = epilogue.activation.kind;
    common_.channels = s_.in_c;
    common_.padded_channels = padded(s_.in_c);
    common_.row_stride = s_.dilation_h * s_.in_w * s_.in_c;
    common_.kernel_w = s_.kernel_w;
    common_.bias = epilogue.bias;
    common_.clamp = kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
    common_.low = kind == ActivationKind::kClip ? epilogue.activation.a : 0;
    common_.high = kind == ActivationKind::kClip ? epilogue.activation.b : HUGE_VALF;
    finish_ = kind != ActivationKind::kNone && !common_.clamp;
  }

  // One row of output.
  void work(int64_t image, int64_t row, const float* zeros, const float** table) const {
    DepthwiseTile tile = common_;
    const int64_t top = row * s_.stride_h - s_.pad_top;
    const int64_t first = top >= 0 ? 0 : std::min(s_.kernel_h, ceil_div(-top, s_.dilation_h));
    const int64_t last = std::clamp<int64_t>(ceil_div(s_.in_h - top, s_.dilation_h), first, s_.kernel_h);
    tile.rows = last - first;
    tile.weights = packed_ + first * s_.kernel_w * tile.padded_channels;
    tile.taps = table;
    const float* input = x_ + (image * s_.in_h + top + first * s_.dilation_h) * s_.in_w * s_.in_c;
    for (int64_t x = 0; x < s_.out_w; x += kTilePixels) {
      const int64_t left = x * s_.stride_w - s_.pad_left;
      const int64_t reach = (kTilePixels - 1) * s_.stride_w + s_.kernel_w;
      const bool inside = kernel_ != nullptr && left >= 0 && left + reach <= s_.in_w;
      tile.pixels = std::min<int64_t>(kTilePixels, s_.out_w - x);
      const int64_t out = ((image * s_.out_h + row) * s_.out_w + x) * s_.in_c;
      tile.out = y_ + out;
      tile.addend = epilogue_.addend == nullptr ? nullptr : epilogue_.addend + out;
      tile.first = inside ? input + left * s_.in_c : nullptr;
      if (!inside) list_inputs(tile, input, left, zeros, table);
      (kernel_ == nullptr ? &depthwise_any_tile : inside ? kernel_->inside : kernel_->edge)(tile);
      if (finish_) finish(tile.out, tile.pixels * s_.in_c);
    }
  }

 private:
  void list_inputs(const DepthwiseTile& tile, const float* input, int64_t left, const float* zeros,
                   const float** table) const {
    const auto at = [&](int64_t row, int64_t column) {
      const bool outside = column < 0 || column >= s_.in_w;
      return outside ? zeros : input + row * tile.row_stride + column * s_.in_c;
    };
    for (int64_t row = 0; row < tile.rows; ++row) {
      if (kernel_ != nullptr) {
        for (int64_t i = 0; i < table_columns(s_); ++i) *table++ = at(row, left + i);
        continue;
      }
      for (int64_t k = 0; k < s_.kernel_w; ++k) {
        for (int r = 0; r < kTilePixels; ++r) *table++ = at(row, left + r * s_.stride_w + k * s_.dilation_w);
      }
    }
  }

  void finish(float* out, int64_t count) const {
    with_activation(FloatTag(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      for (int64_t i = 0; i < count; i += kFloatLanes)
        store_lanes(activation(load_lanes(out + i, count - i)), out + i, count - i);
    });
  }

  const ConvShape& s_;
  const float* x_;
  const float* packed_;
  float* y_;
  const ConvEpilogue& epilogue_;
  const DepthwiseKernel* kernel_;
  DepthwiseTile common_;
  bool finish_ = false;
};

}  // namespace

size_t DepthwisePackedBytes(const ConvShape& s) {
  const int64_t taps = checked_mul(s.kernel_h, s.kernel_w);
  return static_cast<size_t>(round_up(checked_mul(checked_mul(taps, padded(s.in_c)), sizeof(float)), 64));
}

void DepthwisePack(const ConvShape& s, const ConvWeights& w, float* packed) {
  const int64_t width = padded(s.in_c);
  const char* data = static_cast<const char*>(w.data);
  for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
    for (int64_t kw = 0; kw < s.kernel_w; ++kw, packed += width) {
      for (int64_t c = 0; c < s.in_c; ++c) {
        float value;
        std::memcpy(&value, data + (c * w.out_stride + kh * w.row_stride + kw * w.column_stride) * 4,
                    sizeof value);
        packed[c] = w.scale == nullptr ? value : value * w.scale[c];
      }
      std::fill(packed + s.in_c, packed + width, 0.0f);
    }
  }
}

size_t DepthwiseScratch(const ConvShape& s, int threads) {
  return static_cast<size_t>(checked_mul(threads, scratch_of_thread(s)));
}

void DepthwiseRun(const ConvShape& s, const float* x, const float* packed, float* y,
                  const ConvEpilogue& epilogue, std::byte* scratch, int threads) {
  const Depthwise job(s, x, packed, y, epilogue);
  const int64_t rows = s.batch * s.out_h;
  const int64_t workers = std::min<int64_t>(threads, rows);
  const int64_t zero_bytes = round_up(s.in_c * static_cast<int64_t>(sizeof(float)), 64);
  parallel_for(threads, workers, [&](int64_t worker) {
    std::byte* own = scratch + worker * scratch_of_thread(s);
    std::memset(own, 0, static_cast<size_t>(zero_bytes));
    for (int64_t row = rows * worker / workers; row < rows * (worker + 1) / workers; ++row)
      job.work(row / s.out_h, row % s.out_h, reinterpret_cast<const float*>(own),
               reinterpret_cast<const float**>(own + zero_bytes));
  });
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(DepthwisePackedBytes);
HWY_EXPORT(DepthwisePack);
HWY_EXPORT(DepthwiseScratch);
HWY_EXPORT(DepthwiseRun);

size_t depthwise_packed_bytes(const ConvShape& shape) {
  return HWY_DYNAMIC_DISPATCH(DepthwisePackedBytes)(shape);
}

void depthwise_pack(const ConvShape& shape, const ConvWeights& weights, void* packed) {
  HWY_DYNAMIC_DISPATCH(DepthwisePack)(shape, weights, static_cast<float*>(packed));
}

size_t depthwise_scratch_bytes(const ConvShape& shape, int threads) {
  return HWY_DYNAMIC_DISPATCH(DepthwiseScratch)(shape, threads);
}

void depthwise(const ConvShape& shape, const float* x, const void* packed, float* y,
               const ConvEpilogue& epilogue, void* scratch, int threads) {
  if (shape.batch == 0 || shape.out_h == 0 || shape.out_w == 0 || shape.in_c == 0) return;
  HWY_DYNAMIC_DISPATCH(DepthwiseRun)
  (shape, x, static_cast<const float*>(packed), y, epilogue, static_cast<std::byte*>(scratch), threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
