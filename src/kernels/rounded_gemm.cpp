#include "kernels/rounded_gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rounded_gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm_tile-inl.h"
#include "kernels/rounded_forms-inl.h"

#ifndef PLIMSOLL_KERNELS_ROUNDED_GEMM_ONCE_
#define PLIMSOLL_KERNELS_ROUNDED_GEMM_ONCE_
namespace plimsoll::kernels {
namespace {

constexpr int64_t kBlockElements = 256 * 1024;  // of A: a part of the second-level cache
constexpr int64_t kBlockStep = 32;              // rows of a block come in such
constexpr int64_t kSerialProducts = 256 * 1024;

constexpr int64_t up_to(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}
constexpr int64_t depth_of(int64_t k) {
  return up_to(k, kRoundedDepth);
}
// Elements from one rounded row to the next, which do not meet in one set of the cache.
constexpr int64_t row_stride(int64_t k) {
  return depth_of(k) + kRoundedDepth;
}
constexpr int64_t most_block_rows(int64_t k) {
  return std::max(kBlockElements / row_stride(k) / kBlockStep, int64_t{1}) * kBlockStep;
}

// How the work is shared out: a pure function, so that scratch is known ahead.
struct RoundedCut {
  int64_t tasks = 1;
  bool by_rows = true;
  int64_t block_rows = 0;  // of one task's share of scratch
};
RoundedCut cut_of(GemmShape shape, int threads) {
  RoundedCut cut;
  const int64_t panels = up_to(shape.n, kRoundedColumns) / kRoundedColumns;
  if (shape.m * shape.n * std::max<int64_t>(shape.k, 1) > kSerialProducts) cut.tasks = threads;
  cut.by_rows = shape.m >= 2 * kBlockStep * cut.tasks || panels < cut.tasks;
  const int64_t rows = cut.by_rows ? (shape.m + cut.tasks - 1) / cut.tasks : shape.m;
  cut.block_rows = std::min(up_to(rows, kBlockStep), most_block_rows(shape.k));
  return cut;
}

}  // namespace
}  // namespace plimsoll::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// ---- the right operand ---------------------------------------------------------------------------------

// Rounded to nearest even in the upper half of each lane.
HWY_INLINE auto rounded_bits(FloatVec v) {
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Or(bits, hn::Set(du, 0x400000)), rounded);
}

// kRoundedDepth rows of a panel, as floats; zeros where B has none.
void read_rows(int64_t k, int64_t cols, const RoundedRight& b, int64_t first, int64_t col0, float* rows) {
  const int64_t count = std::min(kRoundedDepth, k - first);
  std::memset(rows, 0, kRoundedDepth * kRoundedColumns * sizeof(float));
  const auto* from = static_cast<const char*>(b.data);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const char* at =
        from + (row / b.block * b.block_stride + row % b.block * b.row_stride + col0 * b.col_stride) *
                   int64_t{sizeof(float)};
    float* to = rows + i * kRoundedColumns;
    if (b.col_stride == 1) {
      std::memcpy(to, at, static_cast<size_t>(cols) * sizeof(float));
    } else {
      for (int64_t col = 0; col < cols; ++col)
        std::memcpy(to + col, at + col * b.col_stride * int64_t{sizeof(float)}, sizeof(float));
    }
    if (b.scale == nullptr) continue;
    for (int64_t col = 0; col < cols; ++col) to[col] *= b.scale[col0 + col];
  }
}

void pack_panel_rounded(int64_t k, int64_t cols, const RoundedRight& b, int64_t col0, BFloat16* to) {
  const hn::RebindToUnsigned<FloatTag> du;
  const FloatTag d;
  const auto upper = hn::Set(du, 0xffff0000u);
  HWY_ALIGN float rows[kRoundedDepth * kRoundedColumns];
  for (int64_t first = 0; first < depth_of(k); first += kRoundedDepth) {
    read_rows(k, cols, b, first, col0, rows);
    for (int64_t i = 0; i < kRoundedDepth; i += 2, to += kPairElements) {
      const float* row = rows + i * kRoundedColumns;
      for (int64_t col = 0; col < kRoundedColumns; col += kFloatLanes) {
        const auto even = rounded_bits(hn::Load(d, row + col));
        const auto odd = rounded_bits(hn::Load(d, row + kRoundedColumns + col));
        const auto pairs = hn::Or(hn::ShiftRight<16>(even), hn::And(odd, upper));
        const hn::RepartitionToNarrow<decltype(du)> d16;
        hn::StoreU(hn::BitCast(d16, pairs), d16, bits_of(to + 2 * col));
      }
    }
  }
}

void pack_rounded(int64_t k, int64_t n, const RoundedRight& b, BFloat16* to, int threads) {
  const int64_t panels = up_to(n, kRoundedColumns) / kRoundedColumns;
  parallel_for(threads, panels, [&](int64_t panel) {
    const int64_t col = panel * kRoundedColumns;
    pack_panel_rounded(k, std::min(kRoundedColumns, n - col), b, col, to + col * depth_of(k));
  });
}

// ---- the product ---------------------------------------------------------------------------------------

struct RoundedJob {
  GemmShape shape;
  RoundedLeft a;
  const BFloat16* b;
  GemmOutput<> c;
  GemmEpilogue<> epilogue;
};

template <typename Form>
void round_rows(const RoundedJob& job, int64_t row0, int64_t rows, BFloat16* to) {
  const int64_t k = job.shape.k, stride = row_stride(k);
  for (int64_t r = 0; r < rows; ++r, to += stride) {
    if (job.a.read_row != nullptr) {
      job.a.read_row(job.a.context, row0 + r, to);
    } else {
      const float* from = job.a.data + (row0 + r) * job.a.row_stride;
      if (job.a.col_stride == 1) {
        Form::round_row(from, k, to);
      } else {
        for (int64_t i = 0; i < k; ++i) to[i] = BFloat16(from[i * job.a.col_stride]);
      }
    }
    std::memset(static_cast<void*>(to + k), 0, static_cast<size_t>(depth_of(k) - k) * sizeof(BFloat16));
  }
}

// Rows against the panels [panel0, panel1).
template <typename Form>
void run_rounded_block(const RoundedJob& job, const BFloat16* rows, int64_t row0, int64_t count,
                       int64_t panel0, int64_t panel1) {
  HWY_ALIGN float sums[Form::kRows * Form::kPanels * kRoundedColumns];
  RoundedTile t;
  t.a_stride = row_stride(job.shape.k);
  t.depth = depth_of(job.shape.k);
  t.panel_stride = t.depth * kRoundedColumns;
  t.sums = sums;
  const int64_t wide = Form::panels_for(count);
  for (int64_t panel = panel0; panel < panel1; panel += wide) {
    const int64_t panels = std::min(wide, panel1 - panel), col = panel * kRoundedColumns;
    const int64_t cols = std::min(panels * kRoundedColumns, job.shape.n - col);
    t.b = job.b + panel * t.panel_stride;
    for (int64_t row = 0; row < count; row += Form::kRows) {
      const int64_t some = std::min(Form::kRows, count - row);
      t.a = rows + row * t.a_stride;
      rounded_tile<Form>(some, panels)(t);
      GemmEpilogue<> e = job.epilogue;
      if (e.bias != nullptr) e.bias += col;
      if (e.addend != nullptr) e.addend += (row0 + row) * e.addend_stride + col;
      finish_tile<float>(e, some, cols, sums, panels * kRoundedColumns,
                         job.c.data + (row0 + row) * job.c.row_stride + col, job.c.row_stride);
    }
  }
}

template <typename Form>
void multiply_rounded_as(const RoundedJob& job, BFloat16* scratch, int threads) {
  const GemmShape& shape = job.shape;
  const RoundedCut cut = cut_of(shape, threads);
  const int64_t panels = up_to(shape.n, kRoundedColumns) / kRoundedColumns;
  parallel_for(threads, cut.tasks, [&](int64_t task) {
    const int64_t row0 = cut.by_rows ? shape.m * task / cut.tasks : 0;
    const int64_t row1 = cut.by_rows ? shape.m * (task + 1) / cut.tasks : shape.m;
    const int64_t panel0 = cut.by_rows ? 0 : panels * task / cut.tasks;
    const int64_t panel1 = cut.by_rows ? panels : panels * (task + 1) / cut.tasks;
    BFloat16* rows = scratch + task * cut.block_rows * row_stride(shape.k);
    Form::begin();
    for (int64_t row = row0; row < row1; row += cut.block_rows) {
      const int64_t count = std::min(cut.block_rows, row1 - row);
      round_rows<Form>(job, row, count, rows);
      run_rounded_block<Form>(job, rows, row, count, panel0, panel1);
    }
    Form::end();
  });
}

void multiply_rounded(GemmShape shape, const RoundedLeft& a, const void* packed, const GemmOutput<>& c,
                      const GemmEpilogue<>& epilogue, BFloat16* scratch, int threads, RoundedForm form) {
  if (shape.m == 0 || shape.n == 0) return;
  RoundedJob job{shape, a, static_cast<const BFloat16*>(packed), c, epilogue};
  if (job.epilogue.beta == 0) job.epilogue.addend = nullptr;
  with_rounded_form(form, [&](auto chosen) { multiply_rounded_as<decltype(chosen)>(job, scratch, threads); });
}

bool target_has_form(RoundedForm form) {
  return has_form(form);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(target_has_form);
HWY_EXPORT(pack_rounded);
HWY_EXPORT(multiply_rounded);
}  // namespace

bool has_rounded_form(RoundedForm form) {
  return HWY_DYNAMIC_DISPATCH(target_has_form)(form);
}

RoundedForm rounded_form() {
  for (RoundedForm form : {RoundedForm::kTiles, RoundedForm::kPairs}) {
    if (has_rounded_form(form)) return form;
  }
  return RoundedForm::kWide;
}

size_t rounded_b_bytes(int64_t k, int64_t n) {
  return static_cast<size_t>(depth_of(k) * up_to(n, kRoundedColumns)) * sizeof(BFloat16);
}

void pack_rounded_b(int64_t k, int64_t n, const RoundedRight& b, void* dst, int threads) {
  HWY_DYNAMIC_DISPATCH(pack_rounded)(k, n, b, static_cast<BFloat16*>(dst), threads);
}

size_t rounded_scratch_bytes(GemmShape shape, int threads) {
  if (shape.m == 0 || shape.n == 0) return 0;
  const RoundedCut cut = cut_of(shape, threads);
  return static_cast<size_t>(cut.tasks * cut.block_rows * row_stride(shape.k)) * sizeof(BFloat16);
}

size_t rounded_most_scratch_bytes(int64_t k, int threads) {
  return static_cast<size_t>(threads * most_block_rows(k) * row_stride(k)) * sizeof(BFloat16);
}

void rounded_gemm(GemmShape shape, const RoundedLeft& a, const void* packed_b, GemmOutput<> c,
                  const GemmEpilogue<>& epilogue, void* scratch, int threads, RoundedForm form) {
  HWY_DYNAMIC_DISPATCH(multiply_rounded)
  (shape, a, packed_b, c, epilogue, static_cast<BFloat16*>(scratch), threads, form);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
