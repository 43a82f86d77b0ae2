// The inner loop of int_gemm, once per target: a few rows of A times one panel of B, sums in registers.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/int_finish-inl.h"
#include "kernels/int_gemm_amx-inl.h"
#include "kernels/pair_products-inl.h"
#include "kernels/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using IntTag = hn::ScalableTag<int32_t>;
using IntVec = hn::Vec<IntTag>;
inline constexpr int64_t kIntLanes = hn::MaxLanes(IntTag());
inline constexpr int64_t kIntPanel = 2 * kIntLanes;  // columns

// `first`: what the sums of the columns start with; sums: rows of kIntPanel. The stride of A counts elements.
using IntTile = void (*)(const void* a, int64_t a_stride, const void* b, int64_t groups, const int32_t* first,
                         int32_t* sums);

// How rows are divided into tiles by the forms that have one for each number of rows, and who multiplies
// them.
template <typename Form>
struct TileOfAnyRows {
  static constexpr bool kTakesSigned = false, kReadsAhead = false, kIsCentred = false, kMakesBytes = false;
  static constexpr int32_t kRightLift = 0;  // what elements of B are stored plus
  using Right = int8_t;                     // as B is multiplied; it is packed in bytes
  static int64_t rows_of_tile(int64_t rows, int64_t tiles) { return (rows + tiles - 1) / tiles; }
  static int64_t rows_read(int64_t rows) { return rows; }
  static int64_t block_rows(int64_t) { return Form::kBlockRows; }
  static int64_t packed_groups(int64_t groups) { return groups; }

  class Runner {
   public:
    Runner(int64_t groups, bool) : groups_(groups) {}
    template <typename Meanwhile>
    void tile(const void* a, int64_t stride, const void* b, const int32_t* first, int32_t* sums, int64_t rows,
              int64_t vectors, const Meanwhile& meanwhile) const {
      meanwhile(Form::kRows);
      const auto at = static_cast<size_t>(rows - 1);
      const IntTile multiply = vectors > 1 ? kTiles<2>[at] : kTiles<1>[at];
      multiply(a, stride, b, groups_, first, sums);
    }

   private:
    template <int64_t vectors, size_t... i>
    static constexpr std::array<IntTile, sizeof...(i)> make_tiles(std::index_sequence<i...>) {
      return {Form::template tile<static_cast<int64_t>(i) + 1, vectors>...};
    }
    // By the number of rows, less one.
    template <int64_t vectors>
    static constexpr auto kTiles = make_tiles<vectors>(std::make_index_sequence<Form::kRows>());

    int64_t groups_;
  };
};

// Two products of 16-bit numbers at a time: 255 * 128 * 2 is far from 32 bits. Panels of B are widened as
// they are read; or, for many rows, once for all of them (Element is int16_t then).
template <typename Element>
struct PairTilesOf : TileOfAnyRows<PairTilesOf<Element>> {
  static constexpr bool kIsWide = sizeof(Element) > 1;
  static constexpr int64_t kGroup = 2, kRows = 6;
  // Many rows, so that panels are widened seldom; where vectors are shorter that takes longer.
  static constexpr int64_t kBlockRows = !kIsWide ? 48 : HWY_TARGET == HWY_AVX2 ? 66 : 30;
  using Left = int16_t;
  using Right = Element;

  // A block stays in the second cache.
  static int64_t block_rows(int64_t k) {
    constexpr int64_t kLeast = std::min<int64_t>(kBlockRows, 30);
    return std::clamp((int64_t{128} << 10) / std::max<int64_t>(k, 1) / kRows * kRows, kLeast, kBlockRows);
  }
  // On AVX2 panels are packed for CentredTiles.
  static int64_t packed_groups(int64_t groups) {
    return HWY_TARGET == HWY_AVX2 ? (groups + 3) / 4 * 4 : groups;
  }

  HWY_INLINE static auto load_right(const Element* b) {
    const hn::Repartition<int16_t, IntTag> d16;
    if constexpr (kIsWide) {
      return hn::Load(d16, b);
    } else {
      return hn::PromoteTo(d16, hn::LoadU(hn::Rebind<int8_t, decltype(d16)>(), b));
    }
  }

  // The first `vectors` of a panel's two.
  template <int64_t rows, int64_t vectors>
  static void tile(const void* left, int64_t a_stride, const void* right, int64_t groups,
                   const int32_t* first, int32_t* sums) {
    const IntTag d;
    const hn::Repartition<int16_t, IntTag> d16;
    const auto* a = static_cast<const Left*>(left);
    const auto* b = static_cast<const Element*>(right);
    IntVec sum0[rows], sum1[rows];
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      sum0[r] = hn::Load(d, first);
      if constexpr (vectors > 1) sum1[r] = hn::Load(d, first + kIntLanes);
    }
    for (int64_t g = 0; g < groups; ++g, b += kGroup * kIntPanel) {
      const auto b0 = load_right(b), b1 = load_right(b + kGroup * kIntLanes);
      HWY_UNROLL(8)
      for (int64_t r = 0; r < rows; ++r) {
        int32_t pair;
        std::memcpy(&pair, a + r * a_stride + g * kGroup, sizeof pair);
        const auto value = hn::BitCast(d16, hn::Set(d, pair));
        sum0[r] = add_pair_products(sum0[r], value, b0);
        if constexpr (vectors > 1) sum1[r] = add_pair_products(sum1[r], value, b1);
      }
    }
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      hn::Store(sum0[r], d, sums + r * kIntPanel);
      if constexpr (vectors > 1) hn::Store(sum1[r], d, sums + r * kIntPanel + kIntLanes);
    }
  }
};
using PairTiles = PairTilesOf<int8_t>;
using WidePairTiles = PairTilesOf<int16_t>;

#ifdef PLIMSOLL_VNNI
// Four products of bytes at a time: with AVX-512 all but four of 32 registers are sums, else twelve of 16.
// Where nothing has to be done with sums but to round them, they become bytes without having been stored.
struct QuadTiles : TileOfAnyRows<QuadTiles> {
  static constexpr int64_t kGroup = 4, kRows = HWY_TARGET == HWY_AVX3 ? 14 : 6, kBlockRows = 84;
  static constexpr bool kMakesBytes = true;
  using Left = uint8_t;

  // Of rows that lie where they are multiplied: they stay in the first cache.
  static int64_t block_rows(int64_t k) {
    return std::clamp((int64_t{24} << 10) / std::max<int64_t>(k, 1) / kBlockRows, int64_t{1}, int64_t{8}) *
           kBlockRows;
  }

  struct StoreSums {
    int32_t* sums;
    template <int64_t rows, int64_t vectors>
    HWY_INLINE void end(const IntVec* sum0, const IntVec* sum1) const {
      const IntTag d;
      HWY_UNROLL(16)
      for (int64_t r = 0; r < rows; ++r) {
        hn::Store(sum0[r], d, sums + r * kIntPanel);
        if constexpr (vectors > 1) hn::Store(sum1[r], d, sums + r * kIntPanel + kIntLanes);
      }
    }
  };
  struct MakeBytes {
    const IntFinisher* finisher;
    const float* scales;
    uint8_t* y;
    int64_t y_stride;
    template <int64_t rows, int64_t>
    HWY_INLINE void end(const IntVec* sum0, const IntVec* sum1) const {
      const IntFinisher own = *finisher;
      own.registers<rows>(sum0, sum1, scales, y, y_stride);
    }
  };

#if HWY_TARGET == HWY_AVX3
  static int64_t packed_groups(int64_t groups) {
    return AmxTiles::packed_groups(groups);
  }
#endif

  template <int64_t rows, int64_t vectors>
  static void tile(const void* left, int64_t a_stride, const void* right, int64_t groups,
                   const int32_t* first, int32_t* sums) {
    multiply<rows, vectors>(left, a_stride, right, groups, first, StoreSums{sums});
  }

  template <int64_t rows, int64_t vectors, typename Ending>
  PLIMSOLL_VNNI static void multiply(const void* left, int64_t a_stride, const void* right, int64_t groups,
                                     const int32_t* first, const Ending& ending) {
    const auto* a = static_cast<const Left*>(left);
    const auto* b = static_cast<const int8_t*>(right);
    Quads sum0[rows], sum1[rows];
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
      sum0[r] = load_quads(first);
      if constexpr (vectors > 1) sum1[r] = load_quads(first + kIntLanes);
    }
    for (int64_t g = 0; g < groups; ++g, b += kGroup * kIntPanel, a += kGroup) {
      const Quads b0 = load_quads(b), b1 = load_quads(b + kGroup * kIntLanes);
      // One row waits for B alone, which comes from further away than the processor looks ahead.
      if constexpr (rows == 1) _mm_prefetch(b + 32 * kGroup * kIntPanel, _MM_HINT_T0);
#pragma GCC unroll 16
      for (int64_t r = 0; r < rows; ++r) {
        int32_t quad;
        std::memcpy(&quad, a + r * a_stride, sizeof quad);
        const Quads value = same_quads(quad);
        add_quads(sum0[r], value, b0);
        if constexpr (vectors > 1) add_quads(sum1[r], value, b1);
      }
    }
    IntVec done0[rows], done1[rows];
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
      done0[r] = IntVec{sum0[r]};
      if constexpr (vectors > 1) done1[r] = IntVec{sum1[r]};
    }
    ending.template end<rows, vectors>(done0, done1);
  }
};
#endif

// All columns of a panel, with what a form makes bytes with.
template <typename Form>
class ByteTiles {
 public:
  using Ending = typename Form::MakeBytes;
  static void multiply(const void* a, int64_t a_stride, const void* b, int64_t groups, const int32_t* first,
                       int64_t rows, const Ending& ending) {
    kTiles<2>[static_cast<size_t>(rows - 1)](a, a_stride, b, groups, first, ending);
  }

 private:
  using Tile = void (*)(const void* a, int64_t a_stride, const void* b, int64_t groups, const int32_t* first,
                        const Ending& ending);
  template <int64_t vectors, size_t... i>
  static constexpr std::array<Tile, sizeof...(i)> make_tiles(std::index_sequence<i...>) {
    return {Form::template multiply<static_cast<int64_t>(i) + 1, vectors, Ending>...};
  }
  template <int64_t vectors>
  static constexpr auto kTiles = make_tiles<vectors>(std::make_index_sequence<Form::kRows>());
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
