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
#include "kernels/gemm_lanes-inl.h"
#include "kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// 28 accumulators of 32 registers, or 12 of 16: the rest holds a row of B and one value of A.
inline constexpr int kMaxRows = kLanes == 16 ? 14 : 6;
// Tiles of one vector need more rows to hide the latency of a multiply-add.
inline constexpr int kMaxVectorRows = kLanes == 16 ? 14 : 12;

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

// Bias and start values into the accumulators; only the last vector can be partial.
template <int kRows, int kVecs, class Last>
HWY_INLINE void tile_begin(FloatVec (&acc)[kRows][kVecs], const Tile& t, const Last& last) {
  if (t.bias != nullptr) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      const float* from = t.bias + v * kLanes;
      const FloatVec bias = v + 1 < kVecs ? AllLanes().load(from) : last.load(from);
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
        acc[r][v] = hn::Add(acc[r][v], v + 1 < kVecs ? AllLanes().load(from) : last.load(from));
      }
    }
  }
}

template <int kRows, int kVecs, class Last>
HWY_INLINE void tile_end(const FloatVec (&acc)[kRows][kVecs], const Tile& t, const Last& last) {
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      float* to = t.c + r * t.c_stride + v * kLanes;
      if (v + 1 < kVecs) {
        AllLanes().store(acc[r][v], to);
      } else {
        last.store(acc[r][v], to);
      }
    }
  }
}

template <int kRows, int kVecs>
void tile(const Tile& t) {
  const FloatTag d;
  constexpr int64_t kStep = kVecs == 1 ? kLanes : kPanel;
  const bool full = t.cols == kVecs * kLanes;
  FloatVec acc[kRows][kVecs];
  const float* a[kRows];
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a + r * t.a_stride;
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  if (full) {
    tile_begin(acc, t, AllLanes());
  } else {
    tile_begin(acc, t, Lanes(t.cols - (kVecs - 1) * kLanes));
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
      for (int v = 0; v < kVecs; ++v) acc[r][v] = v_clamp(d, acc[r][v], t.low, t.high);
    }
  }
  if (full) {
    tile_end(acc, t, AllLanes());
  } else {
    tile_end(acc, t, Lanes(t.cols - (kVecs - 1) * kLanes));
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
inline constexpr auto kVectorTiles = make_tiles<1>(std::make_integer_sequence<int, kMaxVectorRows>());
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
    const auto finish = [&](int64_t row, int64_t col, const auto& lanes) HWY_ATTR {
      FloatVec x = hn::Mul(lanes.load(from + row * from_stride + col), alpha);
      if (e.bias != nullptr) x = hn::Add(x, lanes.load(e.bias + col));
      if (e.addend == nullptr) {
        x = activation(x);
      } else {
        const FloatVec addend = lanes.load(e.addend + row * e.addend_stride + col);
        x = e.addend_last ? hn::MulAdd(addend, beta, activation(x)) : activation(hn::MulAdd(addend, beta, x));
      }
      lanes.store(x, c + row * c_stride + col);
    };
    for (int64_t row = 0; row < rows; ++row) {
      int64_t col = 0;
      for (; col + kLanes <= cols; col += kLanes) finish(row, col, AllLanes());
      if (col < cols) finish(row, col, Lanes(cols - col));
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
