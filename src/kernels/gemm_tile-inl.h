// The inner kernels of GEMM, once per target: a tile of kRows x (kVecs * lanes) accumulators in registers.
// T is what B, C, bias and addend are in memory; A comes in the type that is computed in.
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

#include "kernels/accumulate-inl.h"
#include "kernels/activation-inl.h"
#include "kernels/gemm.h"
#include "kernels/gemm_lanes-inl.h"
#include "kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

inline constexpr bool kHas32Registers = kFloatLanes == 16;
// 28 accumulators of 32 registers, or 12 of 16: the rest holds a row of B and one value of A.
inline constexpr int kMaxRows = kHas32Registers ? 14 : 6;
// Tiles of one vector need more rows to hide the latency of a multiply-add.
inline constexpr int kMaxVectorRows = kHas32Registers ? 14 : 12;

template <class T>
inline constexpr int64_t kLineOf = 64 / static_cast<int64_t>(sizeof(T));
// Elements of the next panel that four steps of a tile fetch, so that all of it is there when the tiles of
// this one are done; `panel_row` columns, `tiles` of each panel.
template <class T>
inline int64_t prefetch_step(int64_t panel_row, int64_t tiles) {
  return tiles * kLineOf<T> < 4 * panel_row ? 2 * kLineOf<T> : kLineOf<T>;
}

template <class T>
struct Tile {
  using W = LaneOf<T>;
  const W* a = nullptr;
  int64_t a_stride = 0;
  const T* b = nullptr;
  int64_t b_panel_stride = 0;  // between neighbouring panels, for tiles wider than one
  int64_t k = 0;
  T* c = nullptr;
  int64_t c_stride = 0;
  W* detour = nullptr;  // where results that are not finished go instead of C; c_stride is its. In 16 bits,
                        // all do, as bare products and in whole vectors: rounding is finish_tile's
  int64_t cols = 0;     // columns to store, more than (kVecs - 1) * lanes
  const T* start = nullptr;  // the accumulators begin as start[row, col] + bias[col]; either may be null
  int64_t start_stride = 0;
  const T* bias = nullptr;
  bool clamp = false;
  float low = 0;
  float high = 0;
  // What the next panel needs: four steps fetch so many elements of it.
  const T* prefetch = nullptr;
  int64_t prefetch_step = kLineOf<T>;
};

template <class T, int kRows, int kVecs>
HWY_INLINE void tile_step(VecOf<T> (&acc)[kRows][kVecs], const LaneOf<T>* const (&a)[kRows], int64_t k,
                          const T* b, int64_t b_panel_stride) {
  const TagOf<T> d;
  VecOf<T> row[kVecs];
  HWY_UNROLL(8)
  for (int v = 0; v < kVecs; ++v)
    row[v] = load_aligned(d, b + (v / 2) * b_panel_stride + (v % 2) * kLanesOf<T>);
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    const VecOf<T> value = hn::Set(d, a[r][k]);
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) accumulate(acc[r][v], value, row[v]);
  }
}

// Bias and start values into the accumulators; only the last vector can be partial.
template <class T, int kRows, int kVecs, class Last>
HWY_INLINE void tile_begin(VecOf<T> (&acc)[kRows][kVecs], const Tile<T>& t, const Last& last) {
  const AllLanes<LaneOf<T>> all;
  if (t.bias != nullptr) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      const T* from = t.bias + v * kLanesOf<T>;
      const VecOf<T> bias = v + 1 < kVecs ? all.load(from) : last.load(from);
      HWY_UNROLL(14)
      for (int r = 0; r < kRows; ++r) acc[r][v] = bias;
    }
  }
  if (t.start != nullptr) {
    HWY_UNROLL(14)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) {
        const T* from = t.start + r * t.start_stride + v * kLanesOf<T>;
        acc[r][v] = hn::Add(acc[r][v], v + 1 < kVecs ? all.load(from) : last.load(from));
      }
    }
  }
}

template <class T, int kRows, int kVecs, class Last>
HWY_INLINE void tile_end(const VecOf<T> (&acc)[kRows][kVecs], LaneOf<T>* c, int64_t c_stride,
                         const Last& last) {
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) {
      LaneOf<T>* to = c + r * c_stride + v * kLanesOf<T>;
      if (v + 1 < kVecs) {
        AllLanes<LaneOf<T>>().store(acc[r][v], to);
      } else {
        last.store(acc[r][v], to);
      }
    }
  }
}

template <class T, int kRows, int kVecs>
void tile(const Tile<T>& t) {
  using W = LaneOf<T>;
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  constexpr int64_t kStep = kVecs == 1 ? kLanes : kPanelOf<T>;
  const bool full = t.cols == kVecs * kLanes;
  VecOf<T> acc[kRows][kVecs];
  const W* a[kRows];
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a + r * t.a_stride;
    HWY_UNROLL(8)
    for (int v = 0; v < kVecs; ++v) acc[r][v] = hn::Zero(d);
  }
  if constexpr (!kIsHalf<T>) {
    if (full) {
      tile_begin(acc, t, AllLanes<W>());
    } else {
      tile_begin(acc, t, Lanes<W>(t.cols - (kVecs - 1) * kLanes));
    }
  }

  const T* b = t.b;
  const T* prefetch = t.prefetch;
  const int64_t panel_stride = t.b_panel_stride;
  int64_t k = 0;
  for (; k + 4 <= t.k; k += 4) {
    hwy::Prefetch(prefetch);
    hwy::Prefetch(prefetch + t.prefetch_step - kLineOf<T>);
    prefetch += t.prefetch_step;
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) tile_step<T, kRows, kVecs>(acc, a, k + i, b + i * kStep, panel_stride);
    b += 4 * kStep;
  }
  for (; k < t.k; ++k, b += kStep) tile_step<T, kRows, kVecs>(acc, a, k, b, panel_stride);

  if constexpr (kIsHalf<T>) {
    tile_end<T>(acc, t.detour, t.c_stride, AllLanes<W>());
  } else {
    if (t.clamp) {
      HWY_UNROLL(14)
      for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(8)
        for (int v = 0; v < kVecs; ++v) acc[r][v] = v_clamp(d, acc[r][v], t.low, t.high);
      }
    }
    W* to = t.detour != nullptr ? t.detour : t.c;
    if (full) {
      tile_end<T>(acc, to, t.c_stride, AllLanes<W>());
    } else {
      tile_end<T>(acc, to, t.c_stride, Lanes<W>(t.cols - (kVecs - 1) * kLanes));
    }
  }
}

template <class T>
using TileFunction = void (*)(const Tile<T>&);

template <class T, int kVecs, int... kIndex>
constexpr std::array<TileFunction<T>, sizeof...(kIndex)> make_tiles(std::integer_sequence<int, kIndex...>) {
  return {&tile<T, kIndex + 1, kVecs>...};
}

// Entry r - 1 works on r rows. A few rows alone cannot hide the latency of a multiply-add: they take
// several panels at once.
template <class T>
inline constexpr auto kPanelTiles = make_tiles<T, 2>(std::make_integer_sequence<int, kMaxRows>());
template <class T>
inline constexpr auto kVectorTiles = make_tiles<T, 1>(std::make_integer_sequence<int, kMaxVectorRows>());
inline constexpr int kMaxWideRows = 3;
template <class T>
inline constexpr std::array<TileFunction<T>, kMaxWideRows> kWideTiles = {&tile<T, 1, 8>, &tile<T, 2, 4>,
                                                                         &tile<T, 3, 4>};
inline constexpr std::array<int64_t, kMaxWideRows> kWidePanels = {4, 2, 2};

// What a tile could not do in registers, while its result is still in the first-level cache. `from` is C
// itself, or the tile's detour.
template <class T>
inline void finish_tile(const GemmEpilogue<T>& e, int64_t rows, int64_t cols, const LaneOf<T>* from,
                        int64_t from_stride, T* c, int64_t c_stride) {
  using W = LaneOf<T>;
  const TagOf<T> d;
  const VecOf<T> alpha = hn::Set(d, e.alpha);
  const VecOf<T> beta = hn::Set(d, e.beta);
  with_activation(d, e.activation, [&](auto activation) HWY_ATTR {
    const auto finish = [&](int64_t row, int64_t col, const auto& lanes) HWY_ATTR {
      VecOf<T> x = hn::Mul(lanes.load(from + row * from_stride + col), alpha);
      if (e.bias != nullptr) x = hn::Add(x, lanes.load(e.bias + col));
      if (e.addend == nullptr) {
        x = activation(x);
      } else {
        const VecOf<T> addend = lanes.load(e.addend + row * e.addend_stride + col);
        x = e.addend_last ? hn::MulAdd(addend, beta, activation(x)) : activation(hn::MulAdd(addend, beta, x));
      }
      lanes.store(x, c + row * c_stride + col);
    };
    for (int64_t row = 0; row < rows; ++row) {
      int64_t col = 0;
      for (; col + kLanesOf<T> <= cols; col += kLanesOf<T>) finish(row, col, AllLanes<W>());
      if (col < cols) finish(row, col, Lanes<W>(cols - col));
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
