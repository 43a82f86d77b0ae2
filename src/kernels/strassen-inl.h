// Products by Strassen's way in Winograd's form, one level deep, once per target: the halves of m, k and n
// are multiplied 7 times instead of 8, on the same tiles and the same packed B. Rows are halved block by
// block, columns panel by panel. Sums of A's parts are made for each block, sums of B's for each pair of
// panels, while they are near; nothing of it is kept.
//
//   S1 = A21 + A22   S2 = S1 - A11    S3 = A11 - A21   S4 = A12 - S2
//   T1 = B12 - B11   T2 = B22 - T1    T3 = B22 - B12   T4 = T2 - B21
#if defined(PLIMSOLL_KERNELS_STRASSEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_STRASSEN_INL_H_
#undef PLIMSOLL_KERNELS_STRASSEN_INL_H_
#else
#define PLIMSOLL_KERNELS_STRASSEN_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/gemm_plan-inl.h"
#include "kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Half the rows and half the depth of a block, at most: what is made of both stays in the second-level cache.
inline constexpr int64_t kHalfRows = kHas32Registers ? 112 : 108;
inline constexpr int64_t kHalfDepth = kHas32Registers ? 384 : 192;
inline constexpr int kProducts = 7;
// Which operands of A's are sums: the others are parts of A itself, and copied only where its rows collide.
inline constexpr int kLeftSums = 4;

// The eighth that is saved against what sums cost: those of B for each of the rows that share them, those of
// A for each column, the ends of tiles for each step of k. Measured, in parts of the time; with AVX-512
// between what Zen 4 needs (7 and 3) and Zen 5, which multiplies twice as fast and reads no faster (12 and
// 11).
inline constexpr double kRightCost = 2.3, kLeftCost = kHas32Registers ? 8 : 7,
                        kEndCost = kHas32Registers ? 5.4 : 4, kMostCost = 0.09;

// A function of the shape alone, but for the tasks, so that results do not depend on the number of threads.
struct StrassenCut {
  int64_t pairs = 0;  // of whole panels
  int64_t blocks = 0, half_rows = 0;
  int64_t tiles =
      0;  // one below the other, of half a block at most; tasks share out pairs of panels tile by tile
  int64_t half_depth = 0;
  int64_t left_stride = 0;
  bool copies = false;  // all operands of A's, not only sums
  int64_t tasks_m = 1, tasks_n = 1;
  int64_t left_parts() const { return copies ? kProducts : kLeftSums; }
  int64_t task_elements() const {
    return left_parts() * half_rows * left_stride + 4 * half_depth * kPanelOf<float>;
  }
};

inline StrassenCut cut_strassen(GemmShape shape, int64_t a_row_stride, int threads) {
  StrassenCut cut;
  cut.pairs = shape.n / (2 * kPanelOf<float>);
  cut.blocks = (shape.m + 2 * kHalfRows - 1) / (2 * kHalfRows);
  cut.half_rows = ((shape.m + cut.blocks - 1) / cut.blocks + 1) / 2;
  const int64_t half = shape.k / 2, blocks_k = (half + kHalfDepth - 1) / kHalfDepth;
  cut.half_depth = (half + blocks_k - 1) / blocks_k;
  cut.left_stride = copied_row_elements(cut.half_depth);
  cut.copies = rows_collide<float>(shape, a_row_stride);
  cut.tiles = (cut.half_rows + kMaxRows - 1) / kMaxRows;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t n = threads; n >= 1; --n) {
    const int64_t m = std::min<int64_t>(threads / n, cut.blocks);
    // Each task makes the sums of its rows: an eighth of the time of a pair.
    const int64_t pairs = (cut.pairs * cut.tiles + n - 1) / n;
    const int64_t cost = (8 * pairs + cut.tiles) * ((cut.blocks + m - 1) / m);
    if (cost < best) best = cost, cut.tasks_m = m, cut.tasks_n = n;
  }
  return cut;
}

inline bool pays(GemmShape shape) {
  if (shape.k < 2 || shape.k % 2 != 0 || shape.m < 2 || shape.n < 2 * kPanelOf<float>) return false;
  const StrassenCut cut = cut_strassen(shape, 0, 1);
  // Threads that share one block make its sums of A twice; how many there are may not decide.
  const int64_t columns = cut.pairs * 2 * kPanelOf<float> / (cut.blocks == 1 ? 2 : 1);
  const double cost = kRightCost / static_cast<double>(cut.half_rows) +
                      kLeftCost / static_cast<double>(columns) + kEndCost / static_cast<double>(shape.k);
  return cost <= kMostCost;
}

// The most scratch of any m and n, all threads'.
inline int64_t most_elements(int64_t k, int threads) {
  const int64_t depth = std::min(kHalfDepth, k / 2);
  return threads * (kProducts * kHalfRows * copied_row_elements(depth) + 4 * depth * kPanelOf<float>);
}

// One block: rows that begin at `top` and at `bottom`, of which the last top one may be the first bottom one,
// against `depth` of the first half of k and as many of the second.
struct StrassenBlock {
  int64_t top = 0, bottom = 0, rows = 0;
  int64_t kept = 0;  // rows of the top that are written
  int64_t k0 = 0, depth = 0;
  // The left operands of the products.
  std::array<const float*, kProducts> left{};
  std::array<int64_t, kProducts> left_stride{};
};

// S1 to S4, and A11, A12 and A22 where they are copied, in the order of the products.
inline void left_operands(const GemmLeft<float>& a, const StrassenCut& cut, float* to, StrassenBlock& b) {
  const FloatTag d;
  const int64_t part = cut.half_rows * cut.left_stride, from = a.row_stride, depth = b.depth;
  const float* first = a.data + b.top * from + b.k0;
  const float* second = a.data + b.bottom * from + b.k0;
  b.left_stride.fill(cut.left_stride);
  b.left = {first, first + depth, to, second + depth, to + part, to + 2 * part, to + 3 * part};
  for (size_t i = 0, copied = kLeftSums; i < kProducts; ++i) {
    if (i != 0 && i != 1 && i != 3) continue;
    if (cut.copies) b.left[i] = to + static_cast<int64_t>(copied++) * part;
    if (!cut.copies) b.left_stride[i] = from;
  }
  for (int64_t row = 0; row < b.rows; ++row, to += cut.left_stride) {
    const float *a1 = first + row * from, *a2 = second + row * from;
    for (int64_t k = 0; k < depth; k += kFloatLanes) {
      const int64_t left = depth - k;
      const FloatVec a11 = load_lanes(a1 + k, left), a12 = load_lanes(a1 + depth + k, left);
      const FloatVec a21 = load_lanes(a2 + k, left), a22 = load_lanes(a2 + depth + k, left);
      const FloatVec s1 = hn::Add(a21, a22), s2 = hn::Sub(s1, a11);
      hn::StoreU(hn::Sub(a12, s2), d, to + k);
      hn::StoreU(s1, d, to + part + k);
      hn::StoreU(s2, d, to + 2 * part + k);
      hn::StoreU(hn::Sub(a11, a21), d, to + 3 * part + k);
      if (!cut.copies) continue;
      hn::StoreU(a11, d, to + 4 * part + k);
      hn::StoreU(a12, d, to + 5 * part + k);
      hn::StoreU(a22, d, to + 6 * part + k);
    }
  }
}

// Sums of parts of B, vector by vector: each is kept for the tiles that follow, the last one returned.
struct FirstSums {  // T1 and T2
  const float *b11, *b12, *b22;
  float *t1, *t2;
  HWY_INLINE FloatVec operator()(int64_t at) const {
    const FloatTag d;
    const FloatVec first = hn::Sub(hn::Load(d, b12 + at), hn::Load(d, b11 + at));
    hn::Store(first, d, t1 + at);
    const FloatVec second = hn::Sub(hn::Load(d, b22 + at), first);
    hn::Store(second, d, t2 + at);
    return second;
  }
};
struct Difference {
  const float *from, *subtracted;
  float* to;
  HWY_INLINE FloatVec operator()(int64_t at) const {
    const FloatTag d;
    const FloatVec sum = hn::Sub(hn::Load(d, from + at), hn::Load(d, subtracted + at));
    hn::Store(sum, d, to + at);
    return sum;
  }
};

template <int kRows, class Sums>
HWY_INLINE void summing_step(FloatVec (&acc)[kRows][2], const float* const (&a)[kRows], int64_t k,
                             const Sums& sums) {
  const FloatTag d;
  const FloatVec row[2] = {sums(k * kPanelOf<float>), sums(k * kPanelOf<float> + kFloatLanes)};
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    const FloatVec value = hn::Set(d, a[r][k]);
    HWY_UNROLL(2)
    for (int v = 0; v < 2; ++v) {
      acc[r][v] = hn::MulAdd(value, row[v], acc[r][v]);
#if HWY_TARGET > HWY_AVX3 && HWY_COMPILER_GCC
      __asm__ volatile("" : "+x"(acc[r][v].raw));  // as in tile_step
#endif
    }
  }
}

// A whole panel's tile that makes its right side on the way: the additions run beside the multiplications,
// where a loop of their own would wait for B.
template <int kRows, class Sums>
void summing_tile(const Tile<float>& t, const Sums& sums) {
  const FloatTag d;
  FloatVec acc[kRows][2];
  const float* a[kRows];
  HWY_UNROLL(14)
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a + r * t.a_stride;
    acc[r][0] = acc[r][1] = hn::Zero(d);
  }
  tile_begin(acc, t, AllLanes<float>());
  const float* prefetch = t.prefetch;
  int64_t k = 0;
  for (; k + 4 <= t.k; k += 4) {
    hwy::Prefetch(prefetch);
    hwy::Prefetch(prefetch + t.prefetch_step - kLineOf<float>);
    prefetch += t.prefetch_step;
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) summing_step(acc, a, k + i, sums);
  }
  for (; k < t.k; ++k) summing_step(acc, a, k, sums);
  tile_end<float>(acc, t.c, t.c_stride, AllLanes<float>());
}

template <class Sums, int... kIndex>
constexpr auto make_summing_tiles(std::integer_sequence<int, kIndex...>) {
  using Function = void (*)(const Tile<float>&, const Sums&);
  return std::array<Function, sizeof...(kIndex)>{&summing_tile<kIndex + 1, Sums>...};
}
template <class Sums>
inline constexpr auto kSummingTiles = make_summing_tiles<Sums>(std::make_integer_sequence<int, kMaxRows>());

// Part of C behind a block of k: what it begins with, and the end of it.
struct StrassenEnd {
  const Job<float>& j;
  bool first, last;

  // Rows of two panels' width: their sums are x0, x1, the second with y1 added.
  HWY_INLINE void operator()(int64_t row, int64_t col, int64_t rows, const float* x0, const float* x1,
                             const float* y1) const {
    constexpr int64_t kPanel = kPanelOf<float>;
    const FloatTag d;
    for (int64_t r = 0; r < rows; ++r) {
      float* c = j.c.data + (row + r) * j.c.row_stride + col;
      const float* start = !first               ? c
                           : j.start == nullptr ? nullptr
                                                : j.start + (row + r) * j.start_stride + col;
      const float* bias = first && j.start_bias != nullptr ? j.start_bias + col : nullptr;
      HWY_UNROLL(4)
      for (int64_t v = 0; v < 2 * kPanel; v += kFloatLanes) {
        const int64_t at = r * kPanel + v % kPanel;
        FloatVec x = v < kPanel ? hn::Load(d, x0 + at) : hn::Add(hn::Load(d, x1 + at), hn::Load(d, y1 + at));
        if (bias != nullptr) x = hn::Add(x, hn::LoadU(d, bias + v));
        if (start != nullptr) x = hn::Add(x, hn::LoadU(d, start + v));
        if (last && j.clamp) x = v_clamp(d, x, j.low, j.high);
        hn::StoreU(x, d, c + v);
      }
    }
    if (!last || !j.finish) return;
    GemmEpilogue<float> e = j.epilogue;
    if (e.bias != nullptr) e.bias += col;
    if (e.addend != nullptr) e.addend += row * e.addend_stride + col;
    float* c = j.c.data + row * j.c.row_stride + col;
    finish_tile<float>(e, rows, 2 * kPanel, c, j.c.row_stride, c, j.c.row_stride);
  }
};

// Two panels against tiles [tile0, tile1) of `tiles` of one block. The first of them makes B's sums.
inline void multiply_pair(const Job<float>& job, const StrassenBlock& block, int64_t panel,
                          int64_t next_panel, int64_t tiles, int64_t tile0, int64_t tile1, float* sums) {
  constexpr int64_t kPanel = kPanelOf<float>;
  const int64_t panel_stride = job.shape.k * kPanel, part = block.depth * kPanel;
  const float* b1 = job.b + panel * panel_stride + block.k0 * kPanel;
  const float* b2 = b1 + panel_stride;
  float *t1 = sums, *t2 = sums + part, *t3 = sums + 2 * part, *t4 = sums + 3 * part;
  const std::array<const float*, kProducts> right = {b1, b1 + part, b2 + part, t4, t1, t2, t3};
  const FirstSums first_sums{b1, b2, b2 + part, t1, t2};
  const Difference third_sum{b2 + part, b2, t3}, fourth_sum{b1 + part, t2, t4};
  const StrassenEnd end{job, block.k0 == 0, block.k0 + 2 * block.depth >= job.shape.k};
  HWY_ALIGN float products[kProducts][kMaxRows * kPanelOf<float>];
  Tile<float> t;
  t.k = block.depth;
  t.c_stride = t.start_stride = t.cols = kPanel;
  // What the next pair needs, both panels, is fetched by all tiles of this one.
  const float* next = job.b + next_panel * panel_stride + block.k0 * kPanel;
  t.prefetch_step = prefetch_step<float>(4 * kPanel, kProducts * (tile1 - tile0));
  const int64_t fetched = block.depth / 4 * t.prefetch_step;
  int64_t ahead = 0;
  for (int64_t i = tile0; i < tile1; ++i) {
    const int64_t row = block.rows * i / tiles, count = block.rows * (i + 1) / tiles - row;
    const auto index = static_cast<size_t>(count - 1);
    const auto prepare = [&](size_t product, const float* start) {
      t.a_stride = block.left_stride[product];
      t.a = block.left[product] + row * t.a_stride;
      t.b = right[product];
      t.c = products[product];
      t.start = start;
      const bool is_second = ahead >= 2 * part;
      t.prefetch =
          ahead + fetched > 4 * part ? t.b : next + (is_second ? panel_stride - 2 * part : 0) + ahead;
      ahead += fetched;
    };
    const auto multiply = [&](size_t product, const float* start) {
      prepare(product, start);
      kPanelTiles<float>[index](t);
    };
    const auto multiply_sums = [&](size_t product, const float* start, const auto& made) {
      if (i > tile0) return multiply(product, start);
      prepare(product, start);
      kSummingTiles<std::decay_t<decltype(made)>>[index](t, made);
    };
    multiply(0, nullptr);                       // A11 B11
    multiply(1, products[0]);                   // + A12 B21: C11
    multiply_sums(5, products[0], first_sums);  // A11 B11 + S2 T2: U2
    multiply_sums(6, products[5], third_sum);   // U2 + S3 T3: U3
    multiply(4, nullptr);                       // S1 T1: C22 - U3
    multiply(2, products[4]);                   // S1 T1 + S4 B22: C12 - U2
    multiply_sums(3, products[6], fourth_sum);  // U3 - A22 T4: C21
    const int64_t col = panel * kPanel;
    if (row < block.kept)
      end(block.top + row, col, std::min(count, block.kept - row), products[1], products[2], products[5]);
    end(block.bottom + row, col, count, products[3], products[6], products[4]);
  }
}

// One block of rows: of all tiles of all pairs, pair by pair, [first, last).
inline void multiply_block(const Job<float>& job, const StrassenCut& cut, int64_t number, int64_t first,
                           int64_t last, float* scratch) {
  float* left = scratch + 4 * cut.half_depth * kPanelOf<float>;
  StrassenBlock block;
  block.top = job.shape.m * number / cut.blocks;
  const int64_t end = job.shape.m * (number + 1) / cut.blocks;
  block.kept = (end - block.top) / 2;
  block.bottom = block.top + block.kept;
  block.rows = end - block.bottom;
  for (; block.k0 < job.shape.k; block.k0 += 2 * block.depth) {
    block.depth = std::min(cut.half_depth, (job.shape.k - block.k0) / 2);
    left_operands(job.a, cut, left, block);
    for (int64_t at = first; at < last;) {
      const int64_t pair = at / cut.tiles, end_of_pair = std::min((pair + 1) * cut.tiles, last);
      multiply_pair(job, block, 2 * pair, 2 * std::min(pair + 1, (last - 1) / cut.tiles), cut.tiles,
                    at - pair * cut.tiles, end_of_pair - pair * cut.tiles, scratch);
      at = end_of_pair;
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
