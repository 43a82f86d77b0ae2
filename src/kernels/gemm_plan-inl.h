// How a product is cut into blocks and tasks, and what its tiles do at their ends; once per target.
#if defined(PLIMSOLL_KERNELS_GEMM_PLAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_PLAN_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_PLAN_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_PLAN_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/gemm.h"
#include "kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// A panel of B, kBlockK x kPanel, stays in the nearest cache that holds it while the rows of a block of A,
// kBlockElements at most, pass by. Measured; machines without AVX-512 have smaller caches.
template <class T>
inline constexpr int64_t kBlockK = (kHas32Registers ? 768 : 384) * 4 /
                                   static_cast<int64_t>(sizeof(LaneOf<T>));
// Rows of 16 bits are copied for every block, and B's panels are half as large: less is better.
template <class T>
inline constexpr int64_t kBlockElements = (kHas32Registers ? 128 : 64) * 1024 /
                                          (kIsHalf<T> ? 4 : static_cast<int64_t>(sizeof(T) / 4));
// A smaller B stays in the second-level cache as a whole: then short blocks of rows keep A and C near.
template <class T>
inline constexpr int64_t kSmallRight = 256 * 1024 / static_cast<int64_t>(sizeof(T));
inline constexpr int64_t kShortBlock = 4 * kMaxRows;
// Below this many multiply-adds a second thread costs more than it saves.
inline constexpr int64_t kSerialWork = 256 * 1024;

// How a product is cut: a pure function of shape, strides and threads, so that scratch is known ahead.
struct Blocking {
  int64_t k = 0;
  int64_t rows = 0;
  int64_t copy_stride = 0;  // of copied rows of A, or 0 if A is used where it lies
  int tasks_m = 1;
  int tasks_n = 1;
};

// Rows of A in a block of `k` columns, at most.
template <class T>
inline int64_t most_rows(int64_t k) {
  return std::max(kBlockElements<T> / k, kIsHalf<T> ? 2 * kMaxRows : kShortBlock);
}

inline int64_t copied_row_elements(int64_t k) {
  return (k + 15) / 16 * 16 + 16;
}

// The rows of a tile meet in one set of the first-level cache, which cannot hold them all: a copy with
// another stride, that all panels of B read, is faster.
template <class T>
inline bool rows_collide(GemmShape shape, int64_t a_row_stride) {
  constexpr int64_t kSetBytes = 4096;
  return a_row_stride != 0 && a_row_stride * static_cast<int64_t>(sizeof(T)) % kSetBytes == 0 &&
         shape.m > kMaxRows / 2 && panel_count<T>(shape.n) >= 4;
}

// Partial sums of a product whose k is cut lie in C: 16 bits cannot hold them.
template <class T>
inline Blocking choose_blocking(GemmShape shape, bool copies, bool whole_k, int threads) {
  Blocking cut;
  const int64_t tiles = (shape.m + kMaxRows - 1) / kMaxRows;
  const int64_t panels = panel_count<T>(shape.n);
  if (threads > 1 && shape.m * shape.n * std::max<int64_t>(shape.k, 1) >= kSerialWork) {
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int n_tasks = threads; n_tasks >= 1; --n_tasks) {
      const int m_tasks = threads / n_tasks;
      const int64_t cost = ((panels + n_tasks - 1) / n_tasks) * ((tiles + m_tasks - 1) / m_tasks);
      if (cost < best) {
        best = cost;
        cut.tasks_m = m_tasks;
        cut.tasks_n = n_tasks;
      }
    }
  }
  const int64_t rows = (shape.m + cut.tasks_m - 1) / cut.tasks_m;
  const int64_t blocks_k = (shape.k + kBlockK<T> - 1) / kBlockK<T>;
  const bool whole = kIsHalf<T> || whole_k || rows <= kMaxRows || blocks_k <= 1;
  cut.k = std::max<int64_t>(whole ? shape.k : (shape.k + blocks_k - 1) / blocks_k, 1);
  const bool small = cut.k * shape.n <= kSmallRight<T>;
  const int64_t fit =
      std::min(most_rows<T>(cut.k), small ? kShortBlock : std::numeric_limits<int64_t>::max());
  const int64_t blocks_m = (rows + fit - 1) / fit;
  cut.rows = blocks_m <= 1 ? rows : (rows + blocks_m - 1) / blocks_m;
  if (copies) cut.copy_stride = copied_row_elements(cut.k);
  return cut;
}

template <class T>
struct Job {
  GemmShape shape;
  GemmLeft<T> a;
  const T* b = nullptr;
  GemmOutput<T> c;
  GemmEpilogue<T> epilogue;  // what remains for finish_tile
  const T* start = nullptr;
  int64_t start_stride = 0;
  const T* start_bias = nullptr;
  bool clamp = false;
  float low = 0;
  float high = 0;
  bool finish = false;
  bool detour = false;  // results pass through the stack: the addend lies in C, or they are not yet to round
  Blocking cut;
};

// Moves into the tiles what they can do in registers, unless their results are yet to be rounded.
template <class T>
inline Job<T> plan_job(GemmShape shape, const GemmLeft<T>& a, const void* b, const GemmOutput<T>& c,
                       const GemmEpilogue<T>& epilogue, bool copies, int threads) {
  Job<T> job;
  job.shape = shape;
  job.a = a;
  job.b = static_cast<const T*>(b);
  job.c = c;
  job.epilogue = epilogue;
  GemmEpilogue<T>& e = job.epilogue;
  if (e.beta == 0) e.addend = nullptr;
  if (kIsHalf<T>) {  // finish_tile does it all, and rounds
    job.finish = job.detour = true;
    job.cut = choose_blocking<T>(shape, true, true, threads);
    return job;
  }
  if (e.alpha == 1) job.start_bias = std::exchange(e.bias, nullptr);
  if (e.alpha == 1 && e.beta == 1 && !e.addend_last && e.addend != nullptr) {
    job.start = std::exchange(e.addend, nullptr);
    job.start_stride = e.addend_stride;
  }
  const bool plain = e.alpha == 1 && e.addend == nullptr;
  const ActivationKind kind = e.activation.kind;
  if (plain && (kind == ActivationKind::kRelu || kind == ActivationKind::kClip)) {
    job.clamp = true;
    job.low = kind == ActivationKind::kRelu ? 0 : e.activation.a;
    job.high = kind == ActivationKind::kRelu ? std::numeric_limits<float>::infinity() : e.activation.b;
  } else {
    job.finish = !plain || kind != ActivationKind::kNone;
  }
  job.detour = e.addend == c.data && e.addend != nullptr;
  job.cut = choose_blocking<T>(shape, copies, job.detour, threads);
  return job;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
