// Products of one element type, once per target: gemm_<type>.cpp instantiates this.
#if defined(PLIMSOLL_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/gemm_functions.h"
#include "kernels/gemm_pack-inl.h"
#include "kernels/gemm_plan-inl.h"
#include "kernels/gemm_thin-inl.h"
#include "kernels/gemm_tile-inl.h"
#include "kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// One tile, `cols` wide, at (row, col), over [k0, k0 + k).
template <class T>
void run_tile(const Job<T>& job, TileFunction<T> function, Tile<T>& t, int64_t rows, int64_t row, int64_t col,
              int64_t k0) {
  T* c = job.c.data + row * job.c.row_stride + col;
  const bool last = k0 + t.k >= job.shape.k;
  HWY_ALIGN LaneOf<T> detour[kMaxRows * kPanelOf<T>];
  t.c = c;
  t.detour = job.detour ? detour : nullptr;
  // In 16 bits whole vectors are stored.
  const int64_t width = kIsHalf<T> ? (t.cols + kLanesOf<T> - 1) / kLanesOf<T> * kLanesOf<T> : t.cols;
  t.c_stride = job.detour ? width : job.c.row_stride;
  t.start = k0 > 0 ? c : job.start == nullptr ? nullptr : job.start + row * job.start_stride + col;
  t.start_stride = k0 > 0 ? job.c.row_stride : job.start_stride;
  t.bias = k0 > 0 || job.start_bias == nullptr ? nullptr : job.start_bias + col;
  t.clamp = job.clamp && last;
  function(t);
  if (!job.finish || !last) return;
  GemmEpilogue<T> e = job.epilogue;
  if (e.bias != nullptr) e.bias += col;
  if (e.addend != nullptr) e.addend += row * e.addend_stride + col;
  const LaneOf<T>* from = detour;
  if constexpr (!kIsHalf<T>) from = job.detour ? detour : c;
  finish_tile<T>(e, rows, t.cols, from, t.c_stride, c, job.c.row_stride);
}

// All panels in [panel0, panel1) against one block of A, whose first row is row0.
template <class T>
void run_block(const Job<T>& job, const LaneOf<T>* a, int64_t a_stride, int64_t row0, int64_t rows,
               int64_t panel0, int64_t panel1, int64_t k0, int64_t k) {
  constexpr int64_t kPanel = kPanelOf<T>;
  const int64_t n = job.shape.n;
  Tile<T> t;
  t.a_stride = a_stride;
  t.b_panel_stride = job.shape.k * kPanel;
  t.k = k;
  t.low = job.low;
  t.high = job.high;
  for (int64_t panel = panel0; panel < panel1;) {
    const int64_t wide = rows <= kMaxWideRows ? kWidePanels[static_cast<size_t>(rows - 1)] : 1;
    const int64_t left = std::min(panel1 * kPanel, n) - panel * kPanel;
    const bool is_wide = wide > 1 && left >= wide * kPanel;
    const int64_t width = panel_width<T>(n, panel);
    const int64_t max_rows = width == kPanel ? kMaxRows : kMaxVectorRows;
    const int64_t tiles = (rows + max_rows - 1) / max_rows;
    const TileFunction<T>* functions = width == kPanel ? kPanelTiles<T>.data() : kVectorTiles<T>.data();
    t.b = job.b + panel * t.b_panel_stride + k0 * width;
    t.cols = is_wide ? wide * kPanel : std::min(left, kPanel);
    const int64_t taken = is_wide ? wide : 1;
    const T* next = panel + taken < panel1 ? t.b + taken * t.b_panel_stride : t.b;
    t.prefetch_step = prefetch_step<T>(width, tiles);
    const int64_t fetched = k * t.prefetch_step / 4;  // by one tile
    for (int64_t i = 0, row = 0; i < tiles; ++i) {
      const int64_t count = rows / tiles + (i < rows % tiles ? 1 : 0);
      const auto index = static_cast<size_t>(count - 1);
      t.a = a + row * a_stride;
      t.prefetch = (i + 1) * fetched <= k * width ? next + i * fetched : t.b;
      run_tile<T>(job, is_wide ? kWideTiles<T>[index] : functions[index], t, count, row0 + row,
                  panel * kPanel, k0);
      row += count;
    }
    panel += taken;
  }
}

template <class T>
void run_region(const Job<T>& job, int64_t row0, int64_t row1, int64_t panel0, int64_t panel1,
                LaneOf<T>* scratch) {
  const Blocking& cut = job.cut;
  for (int64_t row = row0; row < row1; row += cut.rows) {
    const int64_t rows = std::min(cut.rows, row1 - row);
    int64_t k0 = 0;
    do {  // once even if k is 0
      const int64_t k = std::min(cut.k, job.shape.k - k0);
      GemmLeft<T> a = job.a;
      a.data += row * a.row_stride + k0 * a.col_stride;
      if (cut.copy_stride != 0) {
        copy_rows<T>(rows, k, a, scratch, cut.copy_stride);
        run_block<T>(job, scratch, cut.copy_stride, row, rows, panel0, panel1, k0, k);
      } else if constexpr (!kIsHalf<T>) {
        run_block<T>(job, a.data, a.row_stride, row, rows, panel0, panel1, k0, k);
      }
      k0 += k;
    } while (k0 < job.shape.k);
  }
}

// Rows of A are copied. Those that only collide need not be.
template <class T>
bool copies_rows(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride) {
  return kIsHalf<T> || a_col_stride != 1 || rows_collide<T>(shape, a_row_stride);
}

template <class T>
int64_t scratch_elements(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads) {
  if (shape.m == 0 || shape.n == 0) return 0;
  int64_t most = 0;
  for (bool whole_k : {false, true}) {  // the epilogue decides which
    const Blocking cut =
        choose_blocking<T>(shape, copies_rows<T>(shape, a_row_stride, a_col_stride), whole_k, threads);
    most = std::max(most, cut.tasks_m * cut.tasks_n * cut.rows * cut.copy_stride);
  }
  return most;
}

// For every m and n: k may be cut, rows may not exceed what fits.
template <class T>
int64_t most_scratch_elements(int64_t k, int threads) {
  const int64_t blocks = std::max<int64_t>(1, (k + kBlockK<T> - 1) / kBlockK<T>);
  int64_t most = 0;
  for (int64_t part : {k, (k + blocks - 1) / blocks}) {
    part = std::max<int64_t>(part, 1);
    most = std::max(most, most_rows<T>(part) * copied_row_elements(part));
  }
  return most * threads;
}

template <class T>
void multiply(GemmShape shape, const GemmLeft<T>& a, const void* packed_b, const GemmOutput<T>& c,
              const GemmEpilogue<T>& epilogue, LaneOf<T>* scratch, int threads) {
  if (shape.m == 0 || shape.n == 0) return;
  const bool copies =
      copies_rows<T>(shape, a.row_stride, a.col_stride) && (scratch != nullptr || a.col_stride != 1);
  const Job<T> job = plan_job<T>(shape, a, packed_b, c, epilogue, copies, threads);
  const Blocking& cut = job.cut;
  const int64_t tasks = cut.tasks_m * cut.tasks_n;
  const int64_t panels = panel_count<T>(shape.n);
  parallel_for(threads, tasks, [&](int64_t task) {
    const int64_t m = task % cut.tasks_m;
    const int64_t n = task / cut.tasks_m;
    run_region<T>(job, shape.m * m / cut.tasks_m, shape.m * (m + 1) / cut.tasks_m, panels * n / cut.tasks_n,
                  panels * (n + 1) / cut.tasks_n, scratch + task * cut.rows * cut.copy_stride);
  });
}

template <class T>
void pack(int64_t k, int64_t n, const GemmRight& b, T* dst, int threads, bool is_used_next) {
  if (k == 0) return;
  const auto* from = static_cast<const T*>(b.data);
  const int64_t panels = panel_count<T>(n);
  const int64_t whole = !is_used_next && streams<T>(k, n, b) ? n / kPanelOf<T> : 0;
  const int64_t workers = std::min<int64_t>(threads, whole);
  parallel_for(threads, workers, [&](int64_t worker) {
    stream_panels<T>(k, whole * worker / workers, whole * (worker + 1) / workers, b, dst);
  });
  parallel_for(k * n > kSerialWork ? threads : 1, panels - whole, [&](int64_t task) {
    const int64_t panel = whole + task, col = panel * kPanelOf<T>;
    pack_panel<T>(k, std::min(kPanelOf<T>, n - col), panel_width<T>(n, panel), from + col * b.col_stride,
                  b.row_stride, b.col_stride, dst + col * k);
  });
}

template <class T>
const GemmFunctions<T>* gemm_table() {
  static constexpr GemmFunctions<T> kTable = {static_cast<int>(kPanelOf<T>),
                                              static_cast<int>(kLanesOf<T>),
                                              &scratch_elements<T>,
                                              &most_scratch_elements<T>,
                                              &multiply<T>,
                                              &multiply_thin<T>,
                                              &pack<T>};
  return &kTable;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
