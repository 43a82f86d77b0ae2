// The inner kernels of GEMM, once per target: a tile of kRows x (kVecs * kLanes) accumulators in registers.
#if defined(PLIMSOLL_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_TILE_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_TILE_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/activation-inl.h"
#include "kernels/gemm.h"
#include "kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 28 accumulators of 32 registers, or 12 of 16: the rest holds a row of B and one value of A.
inline constexpr int kMaxRows = kLanes == 16 ? 14 : 6;

struct Tile {
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_panel_stride = 0;  // between neighbouring panels, for tiles wider than one
  int64_t k = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t cols = 0;              // columns to store, more than (kVecs - 1) * kLanes
  const float* start = nullptr;  // the accumulators begin as start[row, col] + bias[col]; either may be null
  int64_t start_stride = 0;
  const float* bias = nullptr;
  bool clamp = false;
  float low = 0;
  float high = 0;
  const float* prefetch = nullptr;  // bytes that the next panel needs
};

// Masked accesses never touch memory behind the mask; SSE4 has none, so it goes through the stack.
HWY_INLINE FloatVec load_first(const float* p, int64_t count) {
  const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN float lanes[kLanes] = {};
  for (int64_t i = 0; i < std::min(count, kLanes); ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

HWY_INLINE void store_first(FloatVec v, float* p, int64_t count) {
  const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < std::min(count, kLanes); ++i) p[i] = lanes[i];
#endif
}

HWY_INLINE FloatVec load_cols(const float* p, int64_t count) {
  return count >= kLanes ? hn::LoadU(FloatTag(), p) : load_first(p, count);
}

HWY_INLINE void store_cols(FloatVec v, float* p, int64_t count) {
  if (count >= kLanes) {
    hn::StoreU(v, FloatTag(), p);
  } else {
    store_first(v, p, count);
  }
}

template <int kRows, int kVecs>
HWY_INLINE void tile_step(FloatVec (&acc)[kRows][kVecs], const float* const (&a)[kRows], int64_t k,
                          const float* b, int64_t b_panel_stride) {
  const FloatTag d;
  FloatVec row[kVecs];
  HWY_UNROLL(8)
  for (int v = 0; v < kVecs; ++v) row[v] = hn::Load(d, b + (v / 2) * b_panel_stride + (v % 2) * kLanes);
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    const FloatVec value = hn::Set(d, a[r][k]);
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::MulAdd(value, row[v], acc[r][v]);
  }
}

template <int kRows, int kVecs>
void tile(const Tile& t) {
  const FloatTag d;
  constexpr int64_t kStep = kVecs == 1 ? kLanes : kPanel;
  FloatVec acc[kRows][kVecs];
  const float* a[kRows];
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a + r * t.a_stride;
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  if (t.bias != nullptr) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      const FloatVec bias = load_cols(t.bias + v * kLanes, t.cols - v * kLanes);
      HWY_UNROLL(14)
      for (int r = 0; r < kRows; ++r) acc[r][v] = bias;
    }
  }
  if (t.start != nullptr) {
    HWY_UNROLL(14)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) {
        const float* from = t.start + r * t.start_stride + v * kLanes;
        acc[r][v] = hn::Add(acc[r][v], load_cols(from, t.cols - v * kLanes));
      }
    }
  }

  const float* b = t.b;
  const float* prefetch = t.prefetch;
  const int64_t panel_stride = t.b_panel_stride;
  int64_t k = 0;
  for (; k + 4 <= t.k; k += 4) {
    hwy::Prefetch(prefetch);
    prefetch += 16;
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) tile_step<kRows, kVecs>(acc, a, k + i, b + i * kStep, panel_stride);
    b += 4 * kStep;
  }
  for (; k < t.k; ++k, b += kStep) tile_step<kRows, kVecs>(acc, a, k, b, panel_stride);

  if (t.clamp) {
    HWY_UNROLL(14)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) acc[r][v] = clamp(d, acc[r][v], t.low, t.high);
    }
  }
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      store_cols(acc[r][v], t.c + r * t.c_stride + v * kLanes, t.cols - v * kLanes);
    }
  }
}

using TileFunction = void (*)(const Tile&);

template <int kVecs, int... kIndex>
constexpr std::array<TileFunction, sizeof...(kIndex)> make_tiles(std::integer_sequence<int, kIndex...>) {
  return {&tile<kIndex + 1, kVecs>...};
}

// Entry r - 1 works on r rows. A few rows alone cannot hide the latency of a multiply-add: they take
// several panels at once.
inline constexpr auto kPanelTiles = make_tiles<2>(std::make_integer_sequence<int, kMaxRows>());
inline constexpr auto kVectorTiles = make_tiles<1>(std::make_integer_sequence<int, kMaxRows>());
inline constexpr int kMaxWideRows = 3;
inline constexpr std::array<TileFunction, kMaxWideRows> kWideTiles = {&tile<1, 8>, &tile<2, 4>, &tile<3, 4>};
inline constexpr std::array<int64_t, kMaxWideRows> kWidePanels = {4, 2, 2};

// What a tile could not do in registers, while its result is still in the first-level cache. `from` is C
// itself, or a copy if the addend is C.
inline void finish_tile(const GemmEpilogue& e, int64_t rows, int64_t cols, const float* from,
                        int64_t from_stride, float* c, int64_t c_stride) {
  const FloatTag d;
  const FloatVec alpha = hn::Set(d, e.alpha);
  const FloatVec beta = hn::Set(d, e.beta);
  with_activation(d, e.activation, [&](auto activation) HWY_ATTR {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; col += kLanes) {
        const int64_t left = cols - col;
        FloatVec x = hn::Mul(load_cols(from + row * from_stride + col, left), alpha);
        if (e.bias != nullptr) x = hn::Add(x, load_cols(e.bias + col, left));
        if (e.addend != nullptr) {
          const FloatVec addend = load_cols(e.addend + row * e.addend_stride + col, left);
          x = e.addend_last ? hn::MulAdd(addend, beta, activation(x))
                            : activation(hn::MulAdd(addend, beta, x));
        } else {
          x = activation(x);
        }
        store_cols(x, c + row * c_stride + col, left);
      }
    }
  });
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
