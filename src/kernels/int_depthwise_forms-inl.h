// What int_depthwise multiplies columns of rows by, and its packed weights, once per target.
#if defined(PLIMSOLL_KERNELS_INT_DEPTHWISE_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_DEPTHWISE_FORMS_INL_H_
#undef PLIMSOLL_KERNELS_INT_DEPTHWISE_FORMS_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_DEPTHWISE_FORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/pair_products-inl.h"
#include "kernels/vnni-inl.h"

// The rows that a kernel sees are put together first: for each column of the input, the bytes of one channel
// in all rows of the kernel stand side by side, in groups of four bytes. Then a column is multiplied by a
// column of weights four bytes at a time, and every column serves all places of the kernel that see it.
//
// Interleaving leaves the channels of a block in an order of their own: vector v, lane 4 * l + j is channel
// 16 * l + 4 * v + j. Weights and what columns need are in that order too; results are put back at the end.
//
// Groups have room for more rows than a kernel: the same columns serve the next rows of the output, with
// weights that stand some rows further down.
HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using ByteTag = hn::ScalableTag<uint8_t>;
using ByteVec = hn::Vec<ByteTag>;
using SumTag = hn::ScalableTag<int32_t>;
inline constexpr int64_t kSumLanes = hn::MaxLanes(SumTag());
inline constexpr int64_t kChannels = 4 * kSumLanes;  // of a block
inline constexpr int64_t kColumn = 4 * kChannels;    // bytes of one column and group
inline constexpr int64_t kMostColumns = 32;          // of the output at a time

HWY_INLINE int64_t channel_at(int64_t place) {
  const int64_t v = place / kSumLanes, lane = place % kSumLanes;
  return lane / 4 * 16 + v * 4 + lane % 4;
}

// Of one pixel.
using BlockSums = hn::Vec<SumTag>[4];

// Pixels side by side: x at `step` bytes from each other, their columns at `column` bytes.
struct PixelWalk {
  const uint8_t* x;
  int64_t step, columns, column, groups;
};

// Two rows of a kernel in a group, as 16-bit numbers.
struct PairDepthwise {
  static constexpr int64_t kRows = 2, kPixels = 2;

  static void store_weight(int8_t weight, int64_t row, int8_t* group) {
    const int16_t wide = weight;
    std::memcpy(group + 2 * row, &wide, sizeof wide);
  }
  static ByteVec row(const ByteVec* rows, int64_t i) {
    return i % 2 == 0 ? rows[i / 2] : hn::Zero(ByteTag());
  }

  // Calls done(p, sums) for each of the pixels, whose sums begin with `first`.
  template <int64_t pixels, typename Done>
  static void multiply(const PixelWalk& walk, const int8_t* w, const int32_t* first, const Done& done) {
    const SumTag d;
    const hn::Repartition<int16_t, SumTag> d16;
    BlockSums sum[pixels];
    for (int64_t p = 0; p < pixels; ++p) {
      HWY_UNROLL(4)
      for (int64_t v = 0; v < 4; ++v) sum[p][v] = hn::Load(d, first + v * kSumLanes);
    }
    for (int64_t column = 0; column < walk.columns; ++column) {
      const uint8_t* x = walk.x + column * walk.column;
      for (int64_t g = 0; g < walk.groups; ++g, x += kColumn, w += kColumn) {
        HWY_UNROLL(4)
        for (int64_t v = 0; v < 4; ++v) {
          const auto weights = hn::LoadU(d16, reinterpret_cast<const int16_t*>(w) + v * 2 * kSumLanes);
          HWY_UNROLL(2)
          for (int64_t p = 0; p < pixels; ++p) {
            const auto value =
                hn::LoadU(d16, reinterpret_cast<const int16_t*>(x + p * walk.step) + v * 2 * kSumLanes);
            sum[p][v] = add_pair_products(sum[p][v], value, weights);
          }
        }
      }
    }
    HWY_UNROLL(2)
    for (int64_t p = 0; p < pixels; ++p) done(p, sum[p]);
  }
};

#ifdef PLIMSOLL_VNNI
// Four rows of a kernel in a group, as bytes.
struct QuadDepthwise {
  static constexpr int64_t kRows = 4, kPixels = HWY_TARGET == HWY_AVX3 ? 4 : 2;

  static void store_weight(int8_t weight, int64_t row, int8_t* group) { group[row] = weight; }
  static ByteVec row(const ByteVec* rows, int64_t i) { return rows[i]; }

  template <int64_t pixels, typename Done>
  PLIMSOLL_VNNI static void multiply(const PixelWalk& walk, const int8_t* w, const int32_t* first,
                                     const Done& done) {
    Quads sum[pixels][4];
#pragma GCC unroll 4
    for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < 4; ++v) sum[p][v] = load_quads(first + v * kSumLanes);
    }
    for (int64_t column = 0; column < walk.columns; ++column) {
      const uint8_t* x = walk.x + column * walk.column;
      for (int64_t g = 0; g < walk.groups; ++g, x += kColumn, w += kColumn) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < 4; ++v) {
          const Quads weights = load_quads(w + v * kChannels);
#pragma GCC unroll 4
          for (int64_t p = 0; p < pixels; ++p)
            add_quads(sum[p][v], load_quads(x + p * walk.step + v * kChannels), weights);
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < pixels; ++p) {
      const BlockSums sums = {hn::Vec<SumTag>{sum[p][0]}, hn::Vec<SumTag>{sum[p][1]},
                              hn::Vec<SumTag>{sum[p][2]}, hn::Vec<SumTag>{sum[p][3]}};
      done(p, sums);
    }
  }
};
#endif

template <typename F>
auto with_depthwise(F&& f) {
#ifdef PLIMSOLL_VNNI
  if (has_vnni()) return f(QuadDepthwise());
#endif
  return f(PairDepthwise());
}

// ---- weights -----------------------------------------------------------------------------------------

HWY_INLINE int64_t block_count(int64_t channels) {
  return (channels + kChannels - 1) / kChannels;
}
// The last block of many overlaps the one before it, so that all of them are full.
HWY_INLINE int64_t first_channel(int64_t channels, int64_t block) {
  return std::max<int64_t>(0, std::min(block * kChannels, channels - kChannels));
}
template <typename Form>
HWY_INLINE int64_t groups_of(int64_t kernel_h) {
  return (kernel_h + Form::kRows - 1) / Form::kRows;
}
// Of all columns of a block's weights.
template <typename Form>
HWY_INLINE int64_t weight_bytes(int64_t kernel_h, int64_t kernel_w) {
  return kernel_w * groups_of<Form>(kernel_h) * kColumn;
}
// [kernel_w][groups] columns of weights, then their sums by channel.
template <typename Form>
HWY_INLINE int64_t block_bytes(int64_t kernel_h, int64_t kernel_w) {
  return weight_bytes<Form>(kernel_h, kernel_w) + kChannels * 4;
}

template <typename Form>
void pack_block(int64_t channels, int64_t kernel_h, int64_t kernel_w, const uint8_t* w, uint8_t flip,
                int64_t block, int8_t* packed) {
  std::memset(packed, 0, static_cast<size_t>(block_bytes<Form>(kernel_h, kernel_w)));
  const int64_t groups = groups_of<Form>(kernel_h);
  auto* sums = reinterpret_cast<int32_t*>(packed + kernel_w * groups * kColumn);
  for (int64_t place = 0; place < kChannels; ++place) {
    int64_t channel = first_channel(channels, block) + channel_at(place);
    if (kChannels % channels == 0) channel %= channels;
    if (channel >= channels) continue;
    for (int64_t y = 0; y < kernel_h; ++y) {
      for (int64_t x = 0; x < kernel_w; ++x) {
        const auto weight = static_cast<int8_t>(w[(channel * kernel_h + y) * kernel_w + x] ^ flip);
        int8_t* group = packed + (x * groups + y / Form::kRows) * kColumn + place * 4;
        Form::store_weight(weight, y % Form::kRows, group);
        sums[place] += weight;
      }
    }
  }
}

// The weights of a block `rows` rows further down.
template <typename Form>
void lower_weights(const int8_t* weights, int64_t columns, int64_t groups, int64_t rows, int8_t* lowered) {
  const hn::Repartition<uint32_t, SumTag> d;
  const int64_t whole = rows / Form::kRows, rest = rows % Form::kRows;
  const auto up = static_cast<int>(32 / Form::kRows * rest), down = 32 - up;
  for (int64_t column = 0; column < columns; ++column, weights += groups * kColumn) {
    for (int64_t g = 0; g < groups; ++g, lowered += kColumn) {
      const auto group = [&](int64_t at) {
        return reinterpret_cast<const uint32_t*>(weights + at * kColumn);
      };
      for (int64_t i = 0; i < kChannels; i += kSumLanes) {
        auto value = hn::Zero(d);
        if (g >= whole) value = hn::ShiftLeftSame(hn::LoadU(d, group(g - whole) + i), up);
        if (g > whole && rest > 0)
          value = hn::Or(value, hn::ShiftRightSame(hn::LoadU(d, group(g - whole - 1) + i), down));
        hn::StoreU(value, d, reinterpret_cast<uint32_t*>(lowered) + i);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
