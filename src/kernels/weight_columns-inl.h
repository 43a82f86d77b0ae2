// Weights of convolutions by output channels, for packing, once per target.
#if defined(PLIMSOLL_KERNELS_WEIGHT_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_WEIGHT_COLUMNS_INL_H_
#undef PLIMSOLL_KERNELS_WEIGHT_COLUMNS_INL_H_
#else
#define PLIMSOLL_KERNELS_WEIGHT_COLUMNS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/conv.h"
#include "kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// The weights of at most a panel of neighbouring output channels. Where each begins is found once: it takes
// two divisions.
template <class T>
class WeightColumns {
 public:
  WeightColumns(const ConvWeights<T>& w, int64_t first, int64_t count)
      : data_(static_cast<const T*>(w.data)),
        scale_(w.scale == nullptr ? nullptr : w.scale + first),
        stride_(first / w.block == (first + count - 1) / w.block ? w.out_stride : 0) {
    for (int64_t o = 0; o < count; ++o)
      begin_[o] = (first + o) / w.block * w.block_stride + (first + o) % w.block * w.out_stride;
  }

  // Whether quads() may be used.
  bool is_regular() const { return std::is_same_v<T, float> && stride_ != 0; }

  // One weight of a channel, times its factor.
  LaneOf<T> at(int64_t column, int64_t offset) const {
    const auto wide = static_cast<LaneOf<T>>(load_any(data_ + begin_[column] + offset));
    return scale_ == nullptr ? wide : wide * static_cast<LaneOf<T>>(scale_[column]);
  }

  // Whether neighbouring channels lie side by side, as they do for the gradient of a 1x1 kernel's input; then
  // side_by_side() has those of a vector of them.
  bool are_side_by_side() const { return is_regular() && stride_ == 1 && scale_ == nullptr; }
  HWY_INLINE VecOf<T> side_by_side(int64_t column, int64_t offset) const {
    return load_all(TagOf<T>(), data_ + begin_[column] + offset);
  }

  // Four neighbouring weights of each of a vector of channels, times their factors: store(i, vector of the
  // i-th).
  template <class Store>
  HWY_INLINE void quads(int64_t column, int64_t offset, const Store& store) const {
    const FloatTag d;
    const FloatVec scale = scale_ == nullptr ? hn::Set(d, 1.0f) : hn::LoadU(d, scale_ + column);
    transpose_quads(data_ + begin_[column] + offset, stride_,
                    [&](int i, FloatVec v) HWY_ATTR { store(i, hn::Mul(v, scale)); });
  }

 private:
  const T* data_;
  const T* scale_;
  int64_t stride_;  // between channels; 0: none for all
  int64_t begin_[kPanelOf<T>];
};

// A vector of channels whose `planes` * `taps` weights lie one behind the other, packed tap by tap, `width`
// apart. Whoever calls flushes.
HWY_INLINE void pack_channel_lanes(const WeightColumns<float>& columns, int64_t column, int64_t planes,
                                   int64_t taps, float* packed, int64_t width) {
  const FloatTag d;
  const int64_t count = planes * taps;
  for (int64_t next = 0; next < count; next += 4) {
    const int64_t from = std::min(next, count - 4);
    int64_t plane = from / taps, tap = from % taps;
    columns.quads(column, from, [&](int, FloatVec v) HWY_ATTR {
      float* to = packed + (tap * planes + plane) * width + column;
      if constexpr (kFloatLanes * sizeof(float) == 64) {
        hn::Stream(v, d, to);  // a whole line, not needed soon
      } else {
        hn::StoreU(v, d, to);
      }
      if (++tap == taps) tap = 0, ++plane;
    });
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
