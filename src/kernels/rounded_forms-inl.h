// The inner loops of rounded_gemm, once per target: a few rows of A times a few panels of B, in the forms
// that the target has. Each form rounds rows of A in its own way, and writes bare products.
#if defined(PLIMSOLL_KERNELS_ROUNDED_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_ROUNDED_FORMS_INL_H_
#undef PLIMSOLL_KERNELS_ROUNDED_FORMS_INL_H_
#else
#define PLIMSOLL_KERNELS_ROUNDED_FORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/instructions.h"
#include "kernels/lanes-inl.h"
#include "kernels/rounded_gemm.h"
#include "kernels/tile_config.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

inline constexpr int64_t kPairElements = 2 * kRoundedColumns;  // of a panel, for two of k

struct RoundedTile {
  const BFloat16* a = nullptr;
  int64_t a_stride = 0;
  const BFloat16* b = nullptr;
  int64_t panel_stride = 0;
  int64_t depth = 0;      // k, a multiple of kRoundedDepth
  float* sums = nullptr;  // rows of as many whole panels as the tile has
};
using RoundedTileFunction = void (*)(const RoundedTile& t);

HWY_INLINE uint32_t pair_at(const BFloat16* p) {
  uint32_t pair;
  std::memcpy(&pair, p, sizeof pair);
  return pair;
}

// Every element becomes a float again: its bits are the upper half of it.
struct WideForm {
  static constexpr int64_t kVectors = kRoundedColumns / kFloatLanes;
  static constexpr int64_t kRows = kFloatLanes == 16 ? 12 : kFloatLanes == 8 ? 6 : 3;
  static constexpr int64_t kPanels = 1;

  static void begin() {}
  static void end() {}
  static int64_t panels_for(int64_t) { return kPanels; }

  static void round_row(const float* from, int64_t k, BFloat16* to) {
    const FloatTag d;
    int64_t i = 0;
    for (; i + kFloatLanes <= k; i += kFloatLanes) store_all(d, hn::LoadU(d, from + i), to + i);
    for (; i < k; ++i) to[i] = BFloat16(from[i]);
  }

  template <int64_t rows, int64_t panels>
  static void tile(const RoundedTile& t) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const auto upper = hn::Set(du, 0xffff0000u);
    FloatVec sums[rows][kVectors];
    HWY_UNROLL(12)
    for (int64_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    const BFloat16* b = t.b;
    for (int64_t k = 0; k < t.depth; k += 2, b += kPairElements) {
      FloatVec even[kVectors], odd[kVectors];
      HWY_UNROLL(4)
      for (int64_t v = 0; v < kVectors; ++v) {
        const auto pairs = hn::BitCast(
            du, hn::LoadU(hn::RepartitionToNarrow<decltype(du)>(), bits_of(b + 2 * v * kFloatLanes)));
        even[v] = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
        odd[v] = hn::BitCast(d, hn::And(pairs, upper));
      }
      HWY_UNROLL(12)
      for (int64_t r = 0; r < rows; ++r) {
        const uint32_t pair = pair_at(t.a + r * t.a_stride + k);
        const FloatVec first = hn::Set(d, std::bit_cast<float>(pair << 16));
        const FloatVec second = hn::Set(d, std::bit_cast<float>(pair & 0xffff0000u));
        HWY_UNROLL(4)
        for (int64_t v = 0; v < kVectors; ++v) {
          sums[r][v] = hn::MulAdd(first, even[v], sums[r][v]);
          sums[r][v] = hn::MulAdd(second, odd[v], sums[r][v]);
        }
      }
    }
    HWY_UNROLL(12)
    for (int64_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (int64_t v = 0; v < kVectors; ++v)
        hn::StoreU(sums[r][v], d, t.sums + r * kRoundedColumns + v * kFloatLanes);
    }
  }
};

#if HWY_TARGET == HWY_AVX3

// What Highway has no target for is named by the functions that use it.
#define PLIMSOLL_BF16 [[gnu::target("avx512bf16")]]

PLIMSOLL_BF16 inline void round_row_by_pairs(const float* from, int64_t k, BFloat16* to) {
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
    std::memcpy(static_cast<void*>(to + i), &both, sizeof both);
  }
  for (; i < k; i += 16) {
    const auto lanes = static_cast<__mmask16>((1u << std::min<int64_t>(k - i, 16)) - 1);
    const __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, from + i));
    __m256i bits;
    std::memcpy(&bits, &some, sizeof bits);
    _mm256_mask_storeu_epi16(static_cast<void*>(to + i), lanes, bits);
  }
}

struct PairsForm {
  static constexpr int64_t kRows = 14;
  static constexpr int64_t kPanels = 2;

  static void begin() {}
  static void end() {}
  static int64_t panels_for(int64_t) { return kPanels; }
  static void round_row(const float* from, int64_t k, BFloat16* to) { round_row_by_pairs(from, k, to); }

  template <int64_t rows, int64_t panels>
  PLIMSOLL_BF16 static void tile(const RoundedTile& t) {
    __m512 sums[rows][panels];
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int64_t p = 0; p < panels; ++p) sums[r][p] = _mm512_setzero_ps();
    }
    const BFloat16* b = t.b;
    for (int64_t k = 0; k < t.depth; k += 2, b += kPairElements) {
      __m512bh columns[panels];
#pragma GCC unroll 2
      for (int64_t p = 0; p < panels; ++p)
        std::memcpy(&columns[p], static_cast<const void*>(b + p * t.panel_stride), sizeof columns[p]);
#pragma GCC unroll 16
      for (int64_t r = 0; r < rows; ++r) {
        const __m512i pair = _mm512_set1_epi32(static_cast<int>(pair_at(t.a + r * t.a_stride + k)));
#pragma GCC unroll 2
        for (int64_t p = 0; p < panels; ++p)
          sums[r][p] = _mm512_dpbf16_ps(sums[r][p], (__m512bh)pair, columns[p]);
      }
    }
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int64_t p = 0; p < panels; ++p)
        _mm512_storeu_ps(t.sums + (r * panels + p) * kRoundedColumns, sums[r][p]);
    }
  }
};
#undef PLIMSOLL_BF16

#define PLIMSOLL_TILES [[gnu::target("amx-tile,amx-bf16")]]

// Two tiles of 16 rows times two panels, or one times four: four sums on their way hide the latency of each.
// Rows of A that a tile has beyond those asked for must be readable; what is in them stays with them.
struct TilesForm {
  static constexpr int64_t kTileRows = 16;
  static constexpr int64_t kRows = 2 * kTileRows;
  static constexpr int64_t kPanels = 4;

  PLIMSOLL_TILES static void begin() { _tile_loadconfig(&kWholeTiles); }
  PLIMSOLL_TILES static void end() { _tile_release(); }
  static int64_t panels_for(int64_t rows) { return rows > kTileRows ? 2 : kPanels; }
  static void round_row(const float* from, int64_t k, BFloat16* to) { round_row_by_pairs(from, k, to); }

  // Row tiles and panels: 1 x 1 to 1 x 4, 2 x 1 and 2 x 2.
  template <int64_t tiles, int64_t panels>
  PLIMSOLL_TILES static void tile(const RoundedTile& t) {
    constexpr int64_t kTileElements = kRoundedDepth * kRoundedColumns;
    const int64_t a_bytes = t.a_stride * int64_t{sizeof(BFloat16)};
    const BFloat16 *a = t.a, *b = t.b;
    _tile_zero(0);
    if constexpr (tiles * panels > 1) _tile_zero(1);
    if constexpr (tiles * panels > 2) _tile_zero(2);
    if constexpr (tiles * panels > 3) _tile_zero(3);
    for (int64_t k = 0; k < t.depth; k += kRoundedDepth, a += kRoundedDepth, b += kTileElements) {
      _tile_loadd(4, a, a_bytes);
      _tile_loadd(6, b, 64);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (tiles == 2) {
        _tile_loadd(5, a + kTileRows * t.a_stride, a_bytes);
        if constexpr (panels == 2) _tile_loadd(7, b + t.panel_stride, 64);
        _tile_dpbf16ps(1, 5, 6);
        if constexpr (panels == 2) {
          _tile_dpbf16ps(2, 4, 7);
          _tile_dpbf16ps(3, 5, 7);
        }
      } else {
        if constexpr (panels > 1) {
          _tile_loadd(7, b + t.panel_stride, 64);
          _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (panels > 2) {
          _tile_loadd(5, b + 2 * t.panel_stride, 64);
          _tile_dpbf16ps(2, 4, 5);
        }
        if constexpr (panels > 3) {
          _tile_loadd(6, b + 3 * t.panel_stride, 64);
          _tile_dpbf16ps(3, 4, 6);
        }
      }
    }
    constexpr int64_t kStride = panels * kRoundedColumns, kBytes = kStride * int64_t{sizeof(float)};
    _tile_stored(0, t.sums, kBytes);
    if constexpr (tiles == 2) {
      _tile_stored(1, t.sums + kTileRows * kStride, kBytes);
      if constexpr (panels == 2) {
        _tile_stored(2, t.sums + kRoundedColumns, kBytes);
        _tile_stored(3, t.sums + kTileRows * kStride + kRoundedColumns, kBytes);
      }
    } else {
      if constexpr (panels > 1) _tile_stored(1, t.sums + kRoundedColumns, kBytes);
      if constexpr (panels > 2) _tile_stored(2, t.sums + 2 * kRoundedColumns, kBytes);
      if constexpr (panels > 3) _tile_stored(3, t.sums + 3 * kRoundedColumns, kBytes);
    }
  }
};
#undef PLIMSOLL_TILES
#endif  // HWY_AVX3

template <typename Form, int64_t panels, size_t... i>
constexpr std::array<RoundedTileFunction, sizeof...(i)> make_rounded_tiles(std::index_sequence<i...>) {
  return {Form::template tile<static_cast<int64_t>(i) + 1, panels>...};
}

// By the number of rows, at most Form::kRows.
template <typename Form>
RoundedTileFunction rounded_tile(int64_t rows, int64_t panels) {
  static constexpr auto kOne = make_rounded_tiles<Form, 1>(std::make_index_sequence<Form::kRows>());
  const auto at = static_cast<size_t>(rows - 1);
  if constexpr (Form::kPanels > 1) {
    static constexpr auto kTwo = make_rounded_tiles<Form, 2>(std::make_index_sequence<Form::kRows>());
    if (panels > 1) return kTwo[at];
  }
  return kOne[at];
}
#if HWY_TARGET == HWY_AVX3
template <>
RoundedTileFunction rounded_tile<TilesForm>(int64_t rows, int64_t panels) {
  static constexpr std::array<RoundedTileFunction, 4> kOne = {TilesForm::tile<1, 1>, TilesForm::tile<1, 2>,
                                                              TilesForm::tile<1, 3>, TilesForm::tile<1, 4>};
  static constexpr std::array<RoundedTileFunction, 2> kTwo = {TilesForm::tile<2, 1>, TilesForm::tile<2, 2>};
  const auto at = static_cast<size_t>(panels - 1);
  return rows > TilesForm::kTileRows ? kTwo[at] : kOne[at];
}
#endif

inline bool has_form(RoundedForm form) {
#if HWY_TARGET == HWY_AVX3
  if (form == RoundedForm::kTiles) return may_use(kAmxBf16);
  if (form == RoundedForm::kPairs) return may_use(kAvx512Bf16);
#endif
  return form == RoundedForm::kWide;
}

// Calls f with the form.
template <typename F>
void with_rounded_form(RoundedForm form, F&& f) {
#if HWY_TARGET == HWY_AVX3
  if (form == RoundedForm::kTiles && has_form(form)) return f(TilesForm());
  if (form == RoundedForm::kPairs && has_form(form)) return f(PairsForm());
#else
  (void)form;
#endif
  f(WideForm());
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
