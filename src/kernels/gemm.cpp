#include "kernels/gemm.h"

#include <algorithm>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm_pack-inl.h"
#include "kernels/gemm_plan-inl.h"
#include "kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// One tile, `cols` wide, at (row, col), over [k0, k0 + k).
void run_tile(const Job& job, TileFunction function, Tile& t, int64_t rows, int64_t row, int64_t col,
              int64_t k0) {
  float* c = job.c.data + row * job.c.row_stride + col;
  const bool last = k0 + t.k >= job.shape.k;
  HWY_ALIGN float detour[kMaxRows * kPanel];
  t.c = job.detour ? detour : c;
  t.c_stride = job.detour ? t.cols : job.c.row_stride;
  t.start = k0 > 0 ? c : job.start == nullptr ? nullptr : job.start + row * job.start_stride + col;
  t.start_stride = k0 > 0 ? job.c.row_stride : job.start_stride;
  t.bias = k0 > 0 || job.start_bias == nullptr ? nullptr : job.start_bias + col;
  t.clamp = job.clamp && last;
  function(t);
  if (!job.finish || !last) return;
  GemmEpilogue e = job.epilogue;
  if (e.bias != nullptr) e.bias += col;
  if (e.addend != nullptr) e.addend += row * e.addend_stride + col;
  finish_tile(e, rows, t.cols, t.c, t.c_stride, c, job.c.row_stride);
}

// All panels in [panel0, panel1) against one block of A, whose first row is row0.
void run_block(const Job& job, const float* a, int64_t a_stride, int64_t row0, int64_t rows, int64_t panel0,
               int64_t panel1, int64_t k0, int64_t k) {
  const int64_t n = job.shape.n;
  Tile t;
  t.a_stride = a_stride;
  t.b_panel_stride = job.shape.k * kPanel;
  t.k = k;
  t.low = job.low;
  t.high = job.high;
  for (int64_t panel = panel0; panel < panel1;) {
    const int64_t wide = rows <= kMaxWideRows ? kWidePanels[static_cast<size_t>(rows - 1)] : 1;
    const int64_t left = std::min(panel1 * kPanel, n) - panel * kPanel;
    const bool is_wide = wide > 1 && left >= wide * kPanel;
    const int64_t width = panel_width(n, panel);
    const int64_t max_rows = width == kPanel ? kMaxRows : kMaxVectorRows;
    const int64_t tiles = (rows + max_rows - 1) / max_rows;
    const TileFunction* functions = width == kPanel ? kPanelTiles.data() : kVectorTiles.data();
    t.b = job.b + panel * t.b_panel_stride + k0 * width;
    t.cols = is_wide ? wide * kPanel : std::min(left, kPanel);
    const float* next = panel + 1 < panel1 ? t.b + t.b_panel_stride : t.b;
    for (int64_t i = 0, row = 0; i < tiles; ++i) {
      const int64_t count = rows / tiles + (i < rows % tiles ? 1 : 0);
      const auto index = static_cast<size_t>(count - 1);
      t.a = a + row * a_stride;
      t.prefetch = (i + 1) * k * 4 <= k * kPanel ? next + i * k * 4 : t.b;
      run_tile(job, is_wide ? kWideTiles[index] : functions[index], t, count, row0 + row, panel * kPanel, k0);
      row += count;
    }
    panel += is_wide ? wide : 1;
  }
}

void run_region(const Job& job, int64_t row0, int64_t row1, int64_t panel0, int64_t panel1, float* scratch) {
  const Blocking& cut = job.cut;
  for (int64_t row = row0; row < row1; row += cut.rows) {
    const int64_t rows = std::min(cut.rows, row1 - row);
    int64_t k0 = 0;
    do {  // once even if k is 0
      const int64_t k = std::min(cut.k, job.shape.k - k0);
      GemmLeft a = job.a;
      a.data += row * a.row_stride + k0 * a.col_stride;
      if (cut.copy_stride != 0) {
        copy_rows(rows, k, a, scratch, cut.copy_stride);
        run_block(job, scratch, cut.copy_stride, row, rows, panel0, panel1, k0, k);
      } else {
        run_block(job, a.data, a.row_stride, row, rows, panel0, panel1, k0, k);
      }
      k0 += k;
    } while (k0 < job.shape.k);
  }
}

int64_t scratch_floats(GemmShape shape, int64_t a_col_stride, int threads) {
  if (shape.m == 0 || shape.n == 0) return 0;
  int64_t most = 0;
  for (bool whole_k : {false, true}) {  // the epilogue decides which
    const Blocking cut = choose_blocking(shape, a_col_stride, whole_k, threads);
    most = std::max(most, cut.tasks_m * cut.tasks_n * cut.rows * cut.copy_stride);
  }
  return most;
}

// For every m and n: k may be cut, rows may not exceed what fits.
int64_t most_scratch_floats(int64_t k, int threads) {
  const int64_t blocks = std::max<int64_t>(1, (k + kBlockK - 1) / kBlockK);
  int64_t most = 0;
  for (int64_t part : {k, (k + blocks - 1) / blocks}) {
    part = std::max<int64_t>(part, 1);
    most = std::max(most, most_rows(part) * copied_row_floats(part));
  }
  return most * threads;
}

void multiply(GemmShape shape, const GemmLeft& a, const void* packed_b, const GemmOutput& c,
              const GemmEpilogue& epilogue, float* scratch, int threads) {
  if (shape.m == 0 || shape.n == 0) return;
  const Job job = plan_job(shape, a, packed_b, c, epilogue, threads);
  const Blocking& cut = job.cut;
  const int64_t tasks = cut.tasks_m * cut.tasks_n;
  const int64_t panels = panel_count(shape.n);
  parallel_for(threads, tasks, [&](int64_t task) {
    const int64_t m = task % cut.tasks_m;
    const int64_t n = task / cut.tasks_m;
    run_region(job, shape.m * m / cut.tasks_m, shape.m * (m + 1) / cut.tasks_m, panels * n / cut.tasks_n,
               panels * (n + 1) / cut.tasks_n, scratch + task * cut.rows * cut.copy_stride);
  });
}

void pack(int64_t k, int64_t n, const GemmRight& b, float* dst, int threads) {
  if (k == 0) return;
  const auto* from = static_cast<const float*>(b.data);
  parallel_for(k * n > kSerialWork ? threads : 1, panel_count(n), [&](int64_t panel) {
    const int64_t col = panel * kPanel;
    pack_panel(k, std::min(kPanel, n - col), panel_width(n, panel), from + col * b.col_stride, b.row_stride,
               b.col_stride, dst + col * k);
  });
}

int64_t packed_floats(int64_t k, int64_t n) {
  return k * ((n + kLanes - 1) / kLanes * kLanes);
}

int panel_columns() {
  return static_cast<int>(kPanel);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(scratch_floats);
HWY_EXPORT(most_scratch_floats);
HWY_EXPORT(multiply);
HWY_EXPORT(pack);
HWY_EXPORT(packed_floats);
HWY_EXPORT(panel_columns);

constexpr size_t kFloatsPerLine = kGemmAlignment / sizeof(float);

size_t whole_lines(int64_t floats) {
  return (static_cast<size_t>(floats) + kFloatsPerLine - 1) / kFloatsPerLine * kGemmAlignment;
}
}  // namespace

int packed_b_format() {
  return HWY_DYNAMIC_DISPATCH(panel_columns)();
}

size_t packed_b_bytes(int64_t k, int64_t n) {
  return whole_lines(HWY_DYNAMIC_DISPATCH(packed_floats)(k, n));
}

void pack_b(int64_t k, int64_t n, GemmRight b, void* dst, int threads) {
  HWY_DYNAMIC_DISPATCH(pack)(k, n, b, static_cast<float*>(dst), threads);
}

size_t gemm_scratch_bytes(GemmShape shape, int64_t /*a_row_stride*/, int64_t a_col_stride, int threads) {
  return whole_lines(HWY_DYNAMIC_DISPATCH(scratch_floats)(shape, a_col_stride, threads));
}

size_t gemm_most_scratch_bytes(int64_t k, int threads) {
  return whole_lines(HWY_DYNAMIC_DISPATCH(most_scratch_floats)(k, threads));
}

void gemm_packed(GemmShape shape, GemmLeft a, const void* packed_b, GemmOutput c,
                 const GemmEpilogue& epilogue, void* scratch, int threads) {
  HWY_DYNAMIC_DISPATCH(multiply)(shape, a, packed_b, c, epilogue, static_cast<float*>(scratch), threads);
}

size_t gemm_dynamic_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads) {
  return packed_b_bytes(shape.k, shape.n) + gemm_scratch_bytes(shape, a_row_stride, a_col_stride, threads);
}

void gemm(GemmShape shape, GemmLeft a, GemmRight b, GemmOutput c, const GemmEpilogue& epilogue, void* scratch,
          int threads) {
  pack_b(shape.k, shape.n, b, scratch, threads);
  char* rest = static_cast<char*>(scratch) + packed_b_bytes(shape.k, shape.n);
  gemm_packed(shape, a, scratch, c, epilogue, rest, threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
