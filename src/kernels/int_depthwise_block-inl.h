// What int_depthwise does with a block of channels, once per target.
#if defined(PLIMSOLL_KERNELS_INT_DEPTHWISE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_DEPTHWISE_BLOCK_INL_H_
#undef PLIMSOLL_KERNELS_INT_DEPTHWISE_BLOCK_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_DEPTHWISE_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_depthwise.h"
#include "kernels/int_depthwise_forms-inl.h"
#include "kernels/int_finish-inl.h"

// Where a block has room for a multiple of the channels, weights stand there again: with stride 1 neighbours
// in a row, which lie side by side, are one pixel of a whole block.
HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

HWY_INLINE int64_t columns_seen(const IntDepthwiseShape& s, int64_t out_columns) {
  return (out_columns - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}

// How many rows of the output see only what the groups of one kernel have room for.
template <typename Form>
HWY_INLINE int64_t rows_together(const IntDepthwiseShape& s) {
  const int64_t room = groups_of<Form>(s.kernel_h) * Form::kRows - s.kernel_h;
  return s.dilation_h == 1 ? room / s.stride_h + 1 : 1;
}

template <typename Form>
class DepthwiseBlock {
 public:
  DepthwiseBlock(const IntDepthwiseShape& shape, const IntDepthwiseInput& input, const int8_t* packed,
                 IntGemmResult type, const IntGemmFinish& finish, void* y, uint8_t* columns)
      : s_(shape),
        in_(input),
        finisher_(type, finish),
        type_(type),
        finish_(finish),
        y_(static_cast<std::byte*>(y)),
        columns_(columns),
        packed_(packed),
        groups_(groups_of<Form>(shape.kernel_h)),
        merged_(merged(shape)),
        lowered_(reinterpret_cast<int8_t*>(columns) + columns_seen(shape, kMostColumns) * groups_ * kColumn),
        a_zero_(input.zero_point + (input.is_signed ? 128 : 0)) {}

  void rows(int64_t block, int64_t row0, int64_t row1) {
    channel0_ = first_channel(s_.channels, block);
    count_ = std::min(kChannels, merged_ * s_.channels - channel0_);
    w_ = packed_ + block * block_bytes<Form>(s_.kernel_h, s_.kernel_w);
    load_channels();
    // Sums of what a kernel sees are sums of whole columns.
    const int64_t together = has_zeros_ ? 1 : std::min(rows_together<Form>(s_), row1 - row0);
    for (int64_t i = 1; i < together; ++i)
      lower_weights<Form>(w_, s_.kernel_w, groups_, i * s_.stride_h, lowered_weights(i));
    for (int64_t row = row0; row < row1; row += together) {
      const int64_t rows = std::min(together, row1 - row);
      for (int64_t col = 0; col < s_.out_w; col += kMostColumns) {
        const int64_t first = std::min(col, s_.out_w - merged_);
        part_of_rows(row, rows, first, std::min(kMostColumns, s_.out_w - first));
      }
    }
  }

 private:
  // How sums become results.
  enum class Ending : uint8_t { kAny, kBytes, kClampedBytes };

  // How many pixels side by side are one of a whole block.
  static int64_t merged(const IntDepthwiseShape& s) {
    const bool fits = s.stride_w == 1 && kChannels % s.channels == 0 && s.out_w >= kChannels / s.channels;
    return fits ? kChannels / s.channels : 1;
  }

  // Of the output's rows that columns are put together for, the i-th one's; the first has them as packed.
  int8_t* lowered_weights(int64_t i) const {
    return lowered_ + (i - 1) * weight_bytes<Form>(s_.kernel_h, s_.kernel_w);
  }

  // A list by channel in the order of a block; what is behind the last channel does not matter.
  template <typename T>
  void load_list(const T* list, T one, T* to) const {
    if (list == nullptr) {
      std::fill_n(to, kChannels, one);
      return;
    }
    HWY_ALIGN T some[kChannels];
    const T* from = list + channel0_;
    if (merged_ > 1) {
      for (int64_t i = 0; i < kChannels; i += s_.channels) std::copy_n(list, s_.channels, some + i);
      from = some;
    } else if (count_ < kChannels) {
      std::fill(std::copy_n(from, count_, some), some + kChannels, from[0]);
      from = some;
    }
    for (int64_t place = 0; place < kChannels; place += 4)
      std::memcpy(to + place, from + channel_at(place), 4 * sizeof(T));
  }

  void load_channels() {
    const auto* sums = reinterpret_cast<const int32_t*>(w_ + s_.kernel_w * groups_ * kColumn);
    const auto taps = static_cast<uint32_t>(s_.kernel_h * s_.kernel_w);
    const auto zero = static_cast<uint32_t>(a_zero_);
    load_list(finish_.b_zero_points, finish_.b_zero_point, zeros_);
    load_list(finish_.scales, finish_.scale, scales_);
    load_list(finish_.float_bias, 0.0f, float_bias_);
    load_list(finish_.bias, 0, first_);
    const int32_t no_zero = finish_.b_signed ? 0 : 128;
    int32_t all_zeros = 0;
    for (int64_t i = 0; i < kChannels; ++i) {
      zeros_[i] -= no_zero;
      all_zeros |= zeros_[i];
      const auto weights = static_cast<uint32_t>(sums[i]) - taps * static_cast<uint32_t>(zeros_[i]);
      first_[i] = static_cast<int32_t>(static_cast<uint32_t>(first_[i]) - zero * weights);
    }
    has_zeros_ = all_zeros != 0;
    clamps_ = finisher_.clamps(IntFinisher::has_small_scales(scales_, kChannels));
  }

  // ---- columns of the input ------------------------------------------------------------------------

  HWY_INLINE ByteVec load(const uint8_t* from) const {
    if (count_ == kChannels) return hn::LoadU(ByteTag(), from);
#if HWY_TARGET == HWY_AVX3
    return ByteVec{_mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - count_), from)};
#endif
    HWY_ALIGN uint8_t some[kChannels] = {};
    std::memcpy(some, from, static_cast<size_t>(count_));
    return hn::Load(ByteTag(), some);
  }

  // Pixels from column `at` of a line on, of which some may be outside.
  HWY_INLINE ByteVec load_merged(const uint8_t* line, int64_t at) const {
    if (at >= 0 && at + merged_ <= s_.in_w) return hn::LoadU(ByteTag(), line + at * s_.channels);
    HWY_ALIGN uint8_t some[kChannels];
    std::memset(some, a_zero_ ^ (in_.is_signed ? 0x80 : 0), sizeof some);
    const int64_t from = std::clamp<int64_t>(at, 0, s_.in_w),
                  to = std::clamp<int64_t>(at + merged_, 0, s_.in_w);
    if (from < to)
      std::memcpy(some + (from - at) * s_.channels, line + from * s_.channels,
                  static_cast<size_t>((to - from) * s_.channels));
    return hn::Load(ByteTag(), some);
  }

  HWY_INLINE void store_column(const ByteVec* rows, uint8_t* to) const {
    const ByteTag d;
    const hn::Repartition<uint16_t, ByteTag> d16;
    const ByteVec r0 = Form::row(rows, 0), r1 = Form::row(rows, 1), r2 = Form::row(rows, 2),
                  r3 = Form::row(rows, 3);
    const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d, r0, r1)),
               high01 = hn::BitCast(d16, hn::InterleaveUpper(d, r0, r1)),
               low23 = hn::BitCast(d16, hn::InterleaveLower(d, r2, r3)),
               high23 = hn::BitCast(d16, hn::InterleaveUpper(d, r2, r3));
    auto* at = reinterpret_cast<uint16_t*>(to);
    constexpr int64_t kStep = 2 * kSumLanes;
    hn::StoreU(hn::InterleaveLower(d16, low01, low23), d16, at);
    hn::StoreU(hn::InterleaveUpper(d16, low01, low23), d16, at + kStep);
    hn::StoreU(hn::InterleaveLower(d16, high01, high23), d16, at + 2 * kStep);
    hn::StoreU(hn::InterleaveUpper(d16, high01, high23), d16, at + 3 * kStep);
  }

  // The group's rows of what `out_rows` rows of the output see, over `count` columns of the input from
  // `column` on, which may be outside.
  void fill_group(int64_t row, int64_t out_rows, int64_t group, int64_t column, int64_t count) const {
    const ByteTag d;
    const auto* x = static_cast<const uint8_t*>(in_.x) + channel0_;
    const auto bits = static_cast<uint8_t>(in_.is_signed ? 0x80 : 0);
    const ByteVec flip = hn::Set(d, bits);
    HWY_ALIGN uint8_t padding[kChannels], nothing[kChannels];
    std::memset(padding, a_zero_ ^ bits, sizeof padding);
    std::memset(nothing, bits, sizeof nothing);
    const int64_t seen = s_.kernel_h + (out_rows - 1) * s_.stride_h;
    // What a row of the kernel sees: a line, or outside of it always the same.
    const uint8_t *lines[Form::kRows], *outside[Form::kRows];
    int64_t steps[Form::kRows];
    for (int64_t r = 0; r < Form::kRows; ++r) {
      const int64_t tap = group * Form::kRows + r;
      const int64_t y = row * s_.stride_h - s_.pad_top + tap * s_.dilation_h;
      const bool is_inside = tap < seen && y >= 0 && y < s_.in_h;
      outside[r] = tap < seen ? padding : nothing;
      lines[r] = is_inside ? x + y * s_.in_w * s_.channels : outside[r];
      steps[r] = is_inside ? s_.channels : 0;
    }
    uint8_t* to = columns_ + group * kColumn;
    const int64_t step = groups_ * kColumn;
    ByteVec rows[Form::kRows];
    if (merged_ > 1) {
      for (int64_t i = 0; i < count; ++i, to += step) {
        for (int64_t r = 0; r < Form::kRows; ++r)
          rows[r] =
              hn::Xor(steps[r] == 0 ? hn::Load(d, outside[r]) : load_merged(lines[r], column + i), flip);
        store_column(rows, to);
      }
      return;
    }
    const auto fill_outside = [&](int64_t first, int64_t last) HWY_ATTR {
      for (int64_t r = 0; r < Form::kRows; ++r) rows[r] = hn::Xor(hn::Load(d, outside[r]), flip);
      for (int64_t at = first; at < last; ++at, to += step) store_column(rows, to);
    };
    const auto fill_inside = [&](int64_t first, int64_t last, const auto& load_row) HWY_ATTR {
      for (int64_t at = first; at < last; ++at, to += step) {
        HWY_UNROLL(4)
        for (int64_t r = 0; r < Form::kRows; ++r) rows[r] = hn::Xor(load_row(lines[r] + at * steps[r]), flip);
        store_column(rows, to);
      }
    };
    const int64_t end = column + count;
    const int64_t first = std::clamp<int64_t>(column, 0, s_.in_w),
                  last = std::clamp<int64_t>(end, 0, s_.in_w);
    fill_outside(column, std::min<int64_t>(end, 0));
    if (count_ == kChannels) {
      fill_inside(first, last, [&](const uint8_t* from) HWY_ATTR { return hn::LoadU(d, from); });
    } else {
      fill_inside(first, last, [&](const uint8_t* from) HWY_ATTR { return load(from); });
    }
    fill_outside(std::max(column, s_.in_w), end);
  }

  // ---- rows of the output --------------------------------------------------------------------------

  void part_of_rows(int64_t row, int64_t rows, int64_t col, int64_t count) {
    const int64_t seen = columns_seen(s_, count) - (merged_ - 1);
    for (int64_t g = 0; g < groups_; ++g) fill_group(row, rows, g, col * s_.stride_w - s_.pad_left, seen);
    for (int64_t i = 0; i < rows; ++i) {
      const int8_t* w = i == 0 ? w_ : lowered_weights(i);
      const int64_t pixel = (row + i) * s_.out_w + col;
      if (!writes_bytes()) {
        part_of_row<Ending::kAny>(w, pixel, count);
      } else if (clamps_) {
        part_of_row<Ending::kClampedBytes>(w, pixel, count);
      } else {
        part_of_row<Ending::kBytes>(w, pixel, count);
      }
    }
  }

  bool writes_bytes() const {
    constexpr bool has_form = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;
    return has_form && !has_zeros_ && (type_ == IntGemmResult::kUint8 || type_ == IntGemmResult::kInt8);
  }

  template <Ending ending>
  void part_of_row(const int8_t* w, int64_t first, int64_t count) {
    const int64_t column = groups_ * kColumn, blocks = count / merged_;
    const auto pixels_at = [&]<int64_t n>(int64_t at) {
      const PixelWalk walk{columns_ + at * s_.stride_w * column, merged_ * s_.stride_w * column, s_.kernel_w,
                           s_.dilation_w * column, groups_};
      pixels<n, ending>(walk, w, first + at);
    };
    constexpr int64_t n = Form::kPixels;
    int64_t i = 0;
    for (; i + n <= blocks; i += n) pixels_at.template operator()<n>(i * merged_);
    for (; i < blocks; ++i) pixels_at.template operator()<1>(i * merged_);
    // The last ones once more, with some before them.
    if (count % merged_ != 0) pixels_at.template operator()<1>(count - merged_);
  }

  template <int64_t n, Ending ending>
  void pixels(const PixelWalk& walk, const int8_t* w, int64_t pixel) {
    if constexpr (ending == Ending::kAny) {
      HWY_ALIGN int32_t sums[n * kChannels];
      Form::template multiply<n>(walk, w, first_, [&](int64_t p, const BlockSums& block) HWY_ATTR {
        for (int64_t v = 0; v < 4; ++v) hn::Store(block[v], SumTag(), sums + p * kChannels + v * kSumLanes);
      });
      for (int64_t p = 0; p < n; ++p) {
        if (has_zeros_) subtract_zeros(walk, p, sums + p * kChannels);
        store_pixel(sums + p * kChannels, pixel + p * merged_);
      }
    } else {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
      auto* y = reinterpret_cast<uint8_t*>(y_) + pixel * s_.channels + channel0_;
      const IntFinisher finisher = finisher_;
      const float* scales = scales_;
      const int64_t count = count_, step = merged_ * s_.channels;
      Form::template multiply<n>(
          walk, w, first_, [&](int64_t p, const BlockSums& sums) HWY_ATTR __attribute__((always_inline)) {
            constexpr bool clamps = ending == Ending::kClampedBytes;
            store_some(finisher.template unpacked<clamps>(sums, scales), count, y + p * step);
          });
#endif
    }
  }

  // Weights have zero points: the sums of what the kernel sees are multiplied by them.
  void subtract_zeros(const PixelWalk& walk, int64_t pixel, int32_t* sums) const {
    for (int64_t column = 0; column < walk.columns; ++column) {
      const uint8_t* x = walk.x + pixel * walk.step + column * walk.column;
      for (int64_t i = 0; i < walk.groups * kColumn; ++i)
        sums[i % kColumn / 4] -= zeros_[i % kColumn / 4] * x[i];
    }
  }

  void finish_block(const int32_t* sums, void* to) const {
    finisher_.tile(
        {sums, 0, 1, kChannels, scales_, float_bias_, false, nullptr, static_cast<std::byte*>(to), 0});
  }

  void store_pixel(const int32_t* sums, int64_t pixel) const {
    const int64_t at = pixel * s_.channels + channel0_;
    if (type_ == IntGemmResult::kInt32 || type_ == IntGemmResult::kFloat) {
      HWY_ALIGN uint32_t numbers[kChannels];
      finish_block(sums, numbers);
      auto* y = reinterpret_cast<uint32_t*>(y_) + at;
      for (int64_t i = 0; i < kChannels; ++i) {
        if (channel_at(i) < count_) y[channel_at(i)] = numbers[i];
      }
      return;
    }
    auto* y = reinterpret_cast<uint8_t*>(y_ + at);
    if (count_ == kChannels) return store_bytes_of(sums, y);
    HWY_ALIGN uint8_t bytes[kChannels];
    store_bytes_of(sums, bytes);
    std::memcpy(y, bytes, static_cast<size_t>(count_));
  }

  void store_bytes_of(const int32_t* sums, uint8_t* y) const {
    HWY_ALIGN uint8_t bytes[kChannels];
    finish_block(sums, bytes);
    const hn::ScalableTag<uint32_t> d;
    HWY_ALIGN int32_t order[kSumLanes];  // fours of channels
    for (int64_t i = 0; i < kSumLanes; ++i) order[i] = static_cast<int32_t>(i % 4 * (kSumLanes / 4) + i / 4);
    const auto turned = hn::TableLookupLanes(hn::Load(d, reinterpret_cast<const uint32_t*>(bytes)),
                                             hn::SetTableIndices(d, order));
    hn::StoreU(turned, d, reinterpret_cast<uint32_t*>(y));
  }

  HWY_INLINE static void store_some(ByteVec bytes, int64_t count, uint8_t* y) {
    if (count == kChannels) return hn::StoreU(bytes, ByteTag(), y);
#if HWY_TARGET == HWY_AVX3
    _mm512_mask_storeu_epi8(y, ~uint64_t{0} >> (64 - count), bytes.raw);
#else
    HWY_ALIGN uint8_t some[kChannels];
    hn::Store(bytes, ByteTag(), some);
    std::memcpy(y, some, static_cast<size_t>(count));
#endif
  }

  const IntDepthwiseShape& s_;
  const IntDepthwiseInput& in_;
  const IntFinisher finisher_;
  const IntGemmResult type_;
  const IntGemmFinish& finish_;
  std::byte* const y_;
  uint8_t* const columns_;
  const int8_t* const packed_;
  const int64_t groups_, merged_;
  int8_t* const lowered_;
  const int32_t a_zero_;
  int64_t channel0_ = 0, count_ = 0;
  const int8_t* w_ = nullptr;
  bool has_zeros_ = false, clamps_ = false;
  HWY_ALIGN int32_t first_[kChannels];
  HWY_ALIGN int32_t zeros_[kChannels];
  HWY_ALIGN float scales_[kChannels];
  HWY_ALIGN float float_bias_[kChannels];
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
