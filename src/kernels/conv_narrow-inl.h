// Convolution in narrow groups, once per target.
#if defined(PLIMSOLL_KERNELS_CONV_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_CONV_NARROW_INL_H_
#undef PLIMSOLL_KERNELS_CONV_NARROW_INL_H_
#else
#define PLIMSOLL_KERNELS_CONV_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "kernels/activation-inl.h"
#include "kernels/conv_functions.h"
#include "kernels/conv_narrow.h"
#include "kernels/lanes-inl.h"
#include "kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Neighbouring output pixels of one row that are computed together.
constexpr int kNarrowPixels = 7;

// How the input channels of a vector of output channels come to their groups: at<i> gives every lane channel
// i of its group. kBlock channels are taken together: their weights stay in registers.
struct SpreadPairs {
  static constexpr int kBlock = 2;
  FloatVec from;
  SpreadPairs(const float* x, int64_t lanes, int64_t) : from(load_lanes(x, lanes)) {}
  template <int i>
  HWY_INLINE FloatVec at() const {
    if constexpr (i == 0) return hn::DupEven(from);
    return hn::DupOdd(from);
  }
};

struct SpreadQuads {
  static constexpr int kBlock = 4;
  FloatVec from;
  SpreadQuads(const float* x, int64_t lanes, int64_t) : from(load_lanes(x, lanes)) {}
  template <int i>
  HWY_INLINE FloatVec at() const {
    return hn::Broadcast<i>(from);
  }
};

// Groups of eight, two to a vector of sixteen.
struct SpreadEights {
  static constexpr int kBlock = 4;
  FloatVec from;
  SpreadEights(const float* x, int64_t lanes, int64_t first) : from(load_lanes(x, lanes)) {
#if HWY_TARGET <= HWY_AVX3
    // Channels [first, first + 4) of both groups, in all quarters of theirs.
    from = first == 0 ? FloatVec{_mm512_shuffle_f32x4(from.raw, from.raw, 0xA0)}
                      : FloatVec{_mm512_shuffle_f32x4(from.raw, from.raw, 0xF5)};
#endif
    (void)first;
  }
  template <int i>
  HWY_INLINE FloatVec at() const {
    return hn::Broadcast<i>(from);
  }
};

// One group has all lanes of a vector, or of several.
struct SpreadWhole {
  static constexpr int kBlock = 4;
  const float* from;
  SpreadWhole(const float* x, int64_t, int64_t first) : from(x + first) {}
  template <int i>
  HWY_INLINE FloatVec at() const {
    return hn::Set(FloatTag(), from[i]);
  }
};

// One tile: kNarrowPixels pixels of a row, vectors of channels [first_vector, last_vector).
struct NarrowTile {
  const float* weights = nullptr;  // of the first kernel row that meets the image
  int64_t vector_weights = 0;      // from a vector's to the next one's
  int64_t rows = 0;                // kernel rows that meet the image
  int64_t width = 0;               // of a group
  int64_t channels = 0;
  int64_t first_vector = 0, last_vector = 0;
  const float* row = nullptr;  // the input row of the first of them
  int64_t row_stride = 0;
  int64_t left = 0;  // input column of the first pixel's first tap, may be outside
  int64_t in_w = 0;
  int64_t kernel_w = 0, stride_w = 0, dilation_w = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  const float* bias = nullptr;
  const float* addend = nullptr;
  int64_t pixels = 0;  // to store
  bool clamp = false;
  float low = 0, high = 0;
};

// sum[r] += weights[i] * (channel i), for the channels of a block.
template <class Spread, int... i>
HWY_INLINE FloatVec add_block(const Spread& spread, const FloatVec (&w)[Spread::kBlock], FloatVec sum,
                              std::integer_sequence<int, i...>) {
  ((sum = hn::MulAdd(spread.template at<i>(), w[i], sum)), ...);
  return sum;
}

// A kernel of three columns: each input column is loaded once and meets every pixel that it belongs to.
template <class Spread, int kStride, int kChannel>
HWY_INLINE void add_column(FloatVec (&acc)[kNarrowPixels], const FloatVec (&w)[3][Spread::kBlock],
                           const Spread& spread, int column) {
  const FloatVec v = spread.template at<kChannel>();
  HWY_UNROLL(7)
  for (int r = 0; r < kNarrowPixels; ++r) {
    const int tap = column - r * kStride;
    if (tap >= 0 && tap < 3) acc[r] = hn::MulAdd(v, w[tap][kChannel], acc[r]);
  }
  if constexpr (kChannel + 1 < Spread::kBlock)
    add_column<Spread, kStride, kChannel + 1>(acc, w, spread, column);
}

template <class Spread, int kStride, bool kInside>
HWY_INLINE void narrow_row(const NarrowTile& t, FloatVec (&acc)[kNarrowPixels], const float* weights,
                           const float* x, int64_t lanes) {
  constexpr int kColumns = (kNarrowPixels - 1) * kStride + 3;
  const FloatTag d;
  for (int64_t first = 0; first < t.width; first += Spread::kBlock, weights += Spread::kBlock * kFloatLanes) {
    FloatVec w[3][Spread::kBlock];
    HWY_UNROLL(3)
    for (int k = 0; k < 3; ++k) {
      HWY_UNROLL(4)
      for (int i = 0; i < Spread::kBlock; ++i)
        w[k][i] = hn::Load(d, weights + (k * t.width + i) * kFloatLanes);
    }
    const float* from = x + t.left * t.channels;
    HWY_UNROLL(15)
    for (int column = 0; column < kColumns; ++column, from += t.channels) {
      if (!kInside && (t.left + column < 0 || t.left + column >= t.in_w)) continue;
      add_column<Spread, kStride, 0>(acc, w, Spread(from, lanes, first), column);
    }
  }
}

// Any other kernel, tap by tap.
template <class Spread>
HWY_INLINE void any_row(const NarrowTile& t, FloatVec (&acc)[kNarrowPixels], const float* weights,
                        const float* x, int64_t lanes) {
  const FloatTag d;
  for (int64_t k = 0; k < t.kernel_w; ++k) {
    for (int64_t first = 0; first < t.width; first += Spread::kBlock) {
      FloatVec w[Spread::kBlock];
      HWY_UNROLL(4)
      for (int i = 0; i < Spread::kBlock; ++i, weights += kFloatLanes) w[i] = hn::Load(d, weights);
      HWY_UNROLL(7)
      for (int r = 0; r < kNarrowPixels; ++r) {
        const int64_t column = t.left + r * t.stride_w + k * t.dilation_w;
        if (column < 0 || column >= t.in_w) continue;
        acc[r] = add_block(Spread(x + column * t.channels, lanes, first), w, acc[r],
                           std::make_integer_sequence<int, Spread::kBlock>());
      }
    }
  }
}

HWY_INLINE void store_pixels(const NarrowTile& t, const FloatVec (&acc)[kNarrowPixels], int64_t c,
                             int64_t lanes) {
  HWY_UNROLL(7)
  for (int r = 0; r < kNarrowPixels; ++r) {
    if (r >= t.pixels) continue;
    FloatVec y = acc[r];
    if (t.addend != nullptr) y = hn::Add(y, load_lanes(t.addend + r * t.out_stride + c, lanes));
    if (t.clamp) y = v_clamp(FloatTag(), y, t.low, t.high);
    store_lanes(y, t.out + r * t.out_stride + c, lanes);
  }
}

enum class NarrowRow : uint8_t { kInside, kEdge, kAny };

template <class Spread, int kStride, NarrowRow kRow>
void narrow_tile(const NarrowTile& t) {
  for (int64_t vector = t.first_vector; vector < t.last_vector; ++vector) {
    const int64_t c = vector * kFloatLanes, lanes = std::min(kFloatLanes, t.channels - c);
    const int64_t group = std::is_same_v<Spread, SpreadWhole> ? c / t.width * t.width : c;
    const FloatVec start = t.bias == nullptr ? hn::Zero(FloatTag()) : load_lanes(t.bias + c, lanes);
    FloatVec acc[kNarrowPixels];
    HWY_UNROLL(7)
    for (int r = 0; r < kNarrowPixels; ++r) acc[r] = start;
    const float* weights = t.weights + vector * t.vector_weights;
    const float* x = t.row + group;
    for (int64_t row = 0; row < t.rows; ++row) {
      if constexpr (kRow == NarrowRow::kAny) {
        any_row<Spread>(t, acc, weights, x, lanes);
      } else {
        narrow_row<Spread, kStride, kRow == NarrowRow::kInside>(t, acc, weights, x, lanes);
      }
      weights += t.kernel_w * t.width * kFloatLanes;
      x += t.row_stride;
    }
    store_pixels(t, acc, c, lanes);
  }
}

using NarrowFunction = void (*)(const NarrowTile&);
struct NarrowKernel {
  NarrowFunction inside[2], edge[2];  // by stride
  NarrowFunction any;
};
template <class Spread>
constexpr NarrowKernel kNarrowKernel = {
    {&narrow_tile<Spread, 1, NarrowRow::kInside>, &narrow_tile<Spread, 2, NarrowRow::kInside>},
    {&narrow_tile<Spread, 1, NarrowRow::kEdge>, &narrow_tile<Spread, 2, NarrowRow::kEdge>},
    &narrow_tile<Spread, 1, NarrowRow::kAny>};

inline const NarrowKernel& narrow_kernel(int64_t width) {
  if (width >= kFloatLanes) return kNarrowKernel<SpreadWhole>;
  return width == 2   ? kNarrowKernel<SpreadPairs>
         : width == 4 ? kNarrowKernel<SpreadQuads>
                      : kNarrowKernel<SpreadEights>;
}

class NarrowConv {
 public:
  NarrowConv(const ConvShape& shape, const float* x, const float* packed, float* y,
             const ConvEpilogue<>& epilogue)
      : s_(shape),
        x_(x),
        packed_(packed),
        y_(y),
        epilogue_(epilogue),
        kernel_(narrow_kernel(shape.in_c / shape.groups)),
        // Weights of a block of channels stay in the first-level cache from one output row to the next.
        vectors_(ceil_div(s_.in_c, kFloatLanes)) {
    const ActivationKind kind = epilogue.activation.kind;
    common_.width = s_.in_c / s_.groups;
    common_.vector_weights = s_.kernel_h * s_.kernel_w * common_.width * kFloatLanes;
    common_.channels = s_.in_c;
    common_.row_stride = s_.dilation_h * s_.in_w * s_.in_c;
    common_.in_w = s_.in_w;
    common_.kernel_w = s_.kernel_w, common_.stride_w = s_.stride_w, common_.dilation_w = s_.dilation_w;
    common_.out_stride = s_.out_pixel_stride;
    common_.bias = epilogue.bias;
    common_.clamp = kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
    common_.low = kind == ActivationKind::kClip ? epilogue.activation.a : 0;
    common_.high = kind == ActivationKind::kClip ? epilogue.activation.b : HUGE_VALF;
    finish_ = kind != ActivationKind::kNone && !common_.clamp;
    by_columns_ = s_.kernel_w == 3 && s_.dilation_w == 1 && s_.stride_w <= 2;
    const int64_t fit =
        kNearBytes / std::max<int64_t>(1, common_.vector_weights * static_cast<int64_t>(sizeof(float)));
    blocks_ = ceil_div(vectors_, std::clamp<int64_t>(fit, 1, vectors_));
  }

  // A row of output pixels of a block of channels each.
  int64_t units() const { return blocks_ * s_.batch * s_.out_h; }
  void work(int64_t first, int64_t last) const {
    const int64_t rows = s_.batch * s_.out_h;
    for (int64_t unit = first; unit < last; ++unit) work_row(unit / rows, unit % rows);
  }

 private:
  static constexpr int64_t kNearBytes = 16 << 10;

  void work_row(int64_t block, int64_t image_row) const {
    const int64_t image = image_row / s_.out_h, row = image_row % s_.out_h;
    NarrowTile tile = common_;
    tile.first_vector = vectors_ * block / blocks_;
    tile.last_vector = vectors_ * (block + 1) / blocks_;
    const int64_t top = row * s_.stride_h - s_.pad_top;
    const int64_t first = top >= 0 ? 0 : std::min(s_.kernel_h, ceil_div(-top, s_.dilation_h));
    const int64_t last = std::clamp<int64_t>(ceil_div(s_.in_h - top, s_.dilation_h), first, s_.kernel_h);
    tile.rows = last - first;
    tile.weights = packed_ + first * s_.kernel_w * tile.width * kFloatLanes;
    tile.row = x_ + (image * s_.in_h + top + first * s_.dilation_h) * s_.in_w * s_.in_c;
    const int64_t reach = (kNarrowPixels - 1) * s_.stride_w + s_.kernel_w;
    for (int64_t x = 0; x < s_.out_w; x += kNarrowPixels) {
      tile.left = x * s_.stride_w - s_.pad_left;
      tile.pixels = std::min<int64_t>(kNarrowPixels, s_.out_w - x);
      const int64_t out = image * s_.out_image_stride + row * s_.out_row_stride + x * s_.out_pixel_stride;
      tile.out = y_ + out;
      tile.addend = epilogue_.addend == nullptr ? nullptr : epilogue_.addend + out;
      const bool inside = tile.left >= 0 && tile.left + reach <= s_.in_w;
      const NarrowFunction* by_stride = inside ? kernel_.inside : kernel_.edge;
      (by_columns_ ? by_stride[s_.stride_w - 1] : kernel_.any)(tile);
      if (finish_) finish(tile);
    }
  }

  // Activations too large to repeat in every kernel, while the tile is still in the first-level cache.
  void finish(const NarrowTile& t) const {
    const int64_t first = t.first_vector * kFloatLanes;
    const int64_t last = std::min(t.last_vector * kFloatLanes, t.channels);
    with_activation(FloatTag(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      for (int64_t pixel = 0; pixel < t.pixels; ++pixel) {
        float* out = t.out + pixel * t.out_stride;
        for (int64_t c = first; c < last; c += kFloatLanes)
          store_lanes(activation(load_lanes(out + c, last - c)), out + c, last - c);
      }
    });
  }

  const ConvShape& s_;
  const float* x_;
  const float* packed_;
  float* y_;
  const ConvEpilogue<>& epilogue_;
  const NarrowKernel& kernel_;
  NarrowTile common_;
  int64_t vectors_;
  int64_t blocks_ = 1;
  bool finish_ = false, by_columns_ = false;
};

int64_t narrow_lanes() {
  return kFloatLanes;
}

// Vector by vector of output channels; in each, tap by tap, the channels of its groups.
void narrow_pack(const ConvShape& s, const ConvWeights<>& w, float* packed) {
  const int64_t width = s.in_c / s.groups;
  for (int64_t c = 0; c < s.in_c; c += kFloatLanes) {
    for (int64_t tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
      for (int64_t in = 0; in < width; ++in, packed += kFloatLanes) {
        for (int64_t lane = 0; lane < kFloatLanes; ++lane)
          packed[lane] =
              c + lane < s.in_c ? scaled_weight(w, c + lane, in, tap / s.kernel_w, tap % s.kernel_w) : 0.0f;
      }
    }
  }
}

void narrow_run(const ConvShape& s, const float* x, const float* packed, float* y,
                const ConvEpilogue<>& epilogue, int threads) {
  const NarrowConv job(s, x, packed, y, epilogue);
  const int64_t units = job.units(), workers = std::min<int64_t>(threads, units);
  parallel_for(threads, workers,
               [&](int64_t worker) { job.work(units * worker / workers, units * (worker + 1) / workers); });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
