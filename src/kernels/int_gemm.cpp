#include "kernels/int_gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int_gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/int_finish-inl.h"
#include "kernels/int_gemm_forms-inl.h"
#include "kernels/int_gemm_pack-inl.h"
#include "kernels/int_gemm_results-inl.h"
#include "kernels/int_gemm_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

int64_t packed_size(int64_t k, int64_t n) {
  return with_form([&](auto form) { return size_packed<decltype(form)>(k, n); });
}

IntGemmScratch scratch_needed() {
  return kScratch;
}

int format_number() {
  return with_form([](auto form) {
    using Form = decltype(form);
    return static_cast<int>(kIntPanel * 8 + Form::kGroup + (Form::kRightLift != 0 ? 1 : 0));
  });
}

void pack_panels(int64_t k, int64_t n, const IntGemmRight& b, int8_t* packed) {
  with_form([&](auto form) { pack_as<decltype(form)>(k, n, b, packed); });
}

// ---- the product -------------------------------------------------------------------------------------

// Rows of A as the form has them.
template <typename Form>
struct Rows {
  const typename Form::Left* data;
  int64_t stride;
  int64_t readable;  // so many from `data` on
  const uint32_t* sums;
  Misfits misfits;
};

// A panel as the form multiplies it.
template <typename Form>
HWY_INLINE const typename Form::Right* panel_of(const IntJob& job, int64_t panel,
                                                typename Form::Right* wide) {
  const int64_t size = panel_bytes<Form>(job.shape.k);
  const int8_t* b = job.b + panel * size;
  if constexpr (Form::kIsCentred) {
    const auto* quads = reinterpret_cast<const uint8_t*>(b);
#if HWY_TARGET == HWY_AVX2
    if constexpr (Form::kIsNatural) {
      flip_panel(quads, size, wide);
      return wide;
    }
#endif
    return quads;
#if HWY_TARGET == HWY_AVX2
  } else if constexpr (kWidensPanels<Form>) {
    widen_quads(reinterpret_cast<const uint8_t*>(b), size, wide);
    return wide;
#endif
  } else if constexpr (kWidensPanels<Form>) {
    const hn::ScalableTag<int16_t> d;
    const hn::Rebind<int8_t, decltype(d)> d8;
    for (int64_t i = 0; i < size; i += kIntPanel)
      hn::Store(hn::PromoteTo(d, hn::LoadU(d8, b + i)), d, wide + i);
    return wide;
  } else {
    return b;
  }
}

#if HWY_TARGET == HWY_AVX2
// To a tile's sums, of `rows` rows from `row` on.
template <typename Form>
HWY_INLINE void add_misfits(const Misfits& misfits, int64_t row, int64_t rows, const uint8_t* panel,
                            int32_t* sums) {
  for (int64_t r = 0; r < rows; ++r, sums += kIntPanel) {
    const int32_t first = misfits.starts[row + r], last = misfits.starts[row + r + 1];
    if (first != last) Form::add_misfits(misfits.list + first, misfits.list + last, panel, sums);
  }
}
#endif

// Rows against a panel whose sums become bytes at once.
template <typename Form>
void make_bytes(const IntJob& job, const IntFinisher& finisher, const Columns& columns, const Rows<Form>& a,
                const typename Form::Right* b, int64_t row0, int64_t rows, int64_t panel) {
  const int64_t stride = job.c.row_stride, groups = group_count<Form>(job.shape.k);
  auto* y = static_cast<uint8_t*>(job.c.data) + row0 * stride + panel * kIntPanel;
  int64_t row = 0;
  for (int64_t tiles = (rows + Form::kRows - 1) / Form::kRows; tiles > 0; --tiles) {
    const int64_t count = Form::rows_of_tile(rows - row, tiles);
    ByteTiles<Form>::multiply(a.data + row * a.stride, a.stride, b, groups, columns.first, count,
                              {&finisher, columns.scales, y + row * stride, stride});
    row += count;
  }
}

// Rows against the panels [panel0, panel1).
template <typename Form>
void run_block(const IntJob& job, const IntFinisher& finisher, const typename Form::Runner& runner,
               const Rows<Form>& a, typename Form::Right* wide, int64_t row0, int64_t rows, int64_t panel0,
               int64_t panel1) {
  const int64_t tiles = (rows + Form::kRows - 1) / Form::kRows;
  Columns columns[2];
  HWY_ALIGN int32_t sums[2][Form::kRows * kIntPanel];
  SumsTile last(job, finisher);
  [[maybe_unused]] const bool is_uncorrected = !job.a_rows && !job.b_zero;
  int64_t turn = 0;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    Columns& own = columns[panel % 2];
    load_columns(job, panel, own);
    const typename Form::Right* b = panel_of<Form>(job, panel, wide);
    const int64_t vectors = own.count > kIntLanes ? 2 : 1;
    if constexpr (Form::kMakesBytes) {
      if (is_uncorrected && own.count == kIntPanel && finisher.takes_registers(own.has_small_scales)) {
        make_bytes<Form>(job, finisher, own, a, b, row0, rows, panel);
        continue;
      }
    }
    for (int64_t i = 0, row = 0; i < tiles; ++i, turn ^= 1) {
      const int64_t count = Form::rows_of_tile(rows - row, tiles - i);
      // A form that reads more rows than it was asked for begins with earlier ones where there are no later.
      const int64_t before = std::max<int64_t>(0, row + Form::rows_read(count) - a.readable);
      runner.tile(a.data + (row - before) * a.stride, a.stride, b, own.first, sums[turn], count, vectors,
                  [&](int64_t some) { last.finish(some); });
      if constexpr (Form::kIsCentred) add_misfits<Form>(a.misfits, row, count, b, sums[turn]);
      last.set(own, sums[turn] + before * kIntPanel, a.sums + row, row0 + row, count, panel * kIntPanel);
      row += count;
    }
  }
  last.finish(Form::kRows);
}

bool has_b_zero(const IntGemmFinish& f, int64_t n) {
  const int32_t none = f.b_signed ? 0 : 128;
  if (f.b_zero_points == nullptr) return f.b_zero_point != none;
  return std::any_of(f.b_zero_points, f.b_zero_points + n, [&](int32_t zero) { return zero != none; });
}

// The rows of the next block: few blocks, as equal as whole tiles allow.
template <typename Form>
int64_t next_rows(int64_t left, int64_t most) {
  const int64_t blocks = (left + most - 1) / most;
  return std::min(left, Form::rows_read((left + blocks - 1) / blocks));
}

// Whether the rows [row, row + rows) can be multiplied where they lie.
template <typename Form>
bool is_in_place(const IntJob& job, int64_t row, int64_t rows) {
  if constexpr (sizeof(typename Form::Left) > 1) return false;
  if (job.a.read_rows != nullptr || job.a.col_stride != 1 || job.b_zero || job.a_rows) return false;
  const int64_t whole = Form::packed_groups(group_count<Form>(job.shape.k)) * Form::kGroup;
  if (Form::kReadsAhead)  // behind a row, into the next; and whole tiles of rows
    return job.shape.m >= Form::kRows && (whole == job.shape.k || row + rows + Form::kRows <= job.shape.m);
  return !job.a.is_signed && job.shape.k % Form::kGroup == 0 && job.a.row_stride % 2048 != 0;
}

// What a thread has of a product: rows and panels from the first to the last.
struct Share {
  int64_t row0, row1, panel0, panel1;
};

template <typename Form>
IntJob job_of(IntJob job) {
  job.lift = job.a.is_signed && !Form::kTakesSigned ? 128 : 0;
  job.b_lift = Form::kRightLift;
  job.b_zero = has_b_zero(*job.finish, job.shape.n);
  return job;
}

template <typename Form>
void multiply_share(const IntJob& given, const IntFinisher& finisher, const Share& share,
                    std::byte* scratch) {
  const IntJob job = job_of<Form>(given);
  const int64_t k = job.shape.k;
  const Block<Form> block = block_in<Form>(scratch, k);
  const typename Form::Runner runner(group_count<Form>(k), job.a.is_signed);
  for (int64_t row = share.row0, rows = 0; row < share.row1; row += rows) {
    rows = next_rows<Form>(share.row1 - row, Form::block_rows(k));
    bool in_place = is_in_place<Form>(job, row, rows);
    if (!in_place && rows > Form::kBlockRows) {
      rows = next_rows<Form>(share.row1 - row, Form::kBlockRows);
      in_place = is_in_place<Form>(job, row, rows);
    }
    Rows<Form> a{block.rows, block.stride, Form::kBlockRows, block.sums, {}};
    if (in_place) {
      const void* from = static_cast<const uint8_t*>(job.a.data) + row * job.a.row_stride;
      a = {static_cast<const typename Form::Left*>(from), job.a.row_stride, job.shape.m - row, nullptr, {}};
    } else {
      load_rows(job.a, k, row, rows, job.a_rows || job.b_zero, block);
    }
    run_block<Form>(job, finisher, runner, a, block.panel, row, rows, share.panel0, share.panel1);
  }
}

#if HWY_TARGET == HWY_AVX2
// Blocks of rows that do not fit, and all behind them, are multiplied as 16-bit numbers.
template <typename Form>
void multiply_centred(const IntJob& given, const IntFinisher& finisher, const Share& share, int32_t centre,
                      std::byte* scratch) {
  const int64_t k = given.shape.k;
  const int8_t* sizes = given.b + size_packed<Form>(k, given.shape.n) - size_bytes(k);
  IntJob job = job_of<Form>(given);
  if constexpr (Form::kIsNatural) {
    job.b_lift = 0;
  } else {
    job.lift -= centre;
    job.b_zero = true;
  }
  const Block<Form> block = block_in<Form>(scratch, k);
  const typename Form::Runner runner(group_count<Form>(k), job.a.is_signed);
  for (int64_t row = share.row0, rows = 0; row < share.row1; row += rows) {
    rows = next_rows<Form>(share.row1 - row, Form::block_rows(k));
    if (!load_centred_rows<Form>(job.a, k, row, rows, centre, sizes, block))
      return multiply_share<WidePairTiles>(given, finisher, {row, share.row1, share.panel0, share.panel1},
                                           scratch);
    run_block<Form>(job, finisher, runner,
                    {block.rows, block.stride, Form::kBlockRows, block.sums, block.misfits}, block.panel, row,
                    rows, share.panel0, share.panel1);
  }
}

template <>
void multiply_share<CentredTiles>(const IntJob& job, const IntFinisher& finisher, const Share& share,
                                  std::byte* scratch) {
  // Fewer rows do not pay for panels of another kind, fewer panels not for looking at rows.
  constexpr int64_t kManyRows = 3 * WidePairTiles::kRows, kPanels = 4;
  constexpr int32_t kNearZero = 31;
  const int64_t rows = share.row1 - share.row0;
  if (rows >= kManyRows && share.panel1 - share.panel0 < kPanels)
    return multiply_share<WidePairTiles>(job, finisher, share, scratch);
  const int32_t zero =
      (job.a_rows ? job.a.zero_points[share.row0] : job.a.zero_point) + (job.a.is_signed ? 128 : 0);
  if (rows >= kManyRows && zero <= kNearZero) {
    multiply_centred<NaturalTiles>(job, finisher, share, 0, scratch);
  } else {
    multiply_centred<CentredTiles>(job, finisher, share, centre_of(zero), scratch);
  }
}
#endif

template <typename Form>
void multiply_as(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                 const IntGemmFinish& finish, std::byte* scratch, int threads) {
  if (shape.m == 0 || shape.n == 0) return;
  const int64_t panels = int_panels(shape.n);
  const auto* b = static_cast<const int8_t*>(packed);
  const auto* sums = reinterpret_cast<const int32_t*>(b + panels * panel_bytes<Form>(shape.k));
  const IntJob job{shape, a, b, sums, c, &finish, 0, 0, a.zero_points != nullptr, false};
  const IntFinisher finisher(c.type, finish);
  // What another thread takes longer to wake than to do; of few rows B takes longer to come than to multiply.
  constexpr int64_t kLittle = Form::kIsCentred || sizeof(typename Form::Left) > 1 ? 400000 : 1500000;
  const int64_t work = (shape.m + 4) * shape.n * std::max<int64_t>(shape.k, 1);
  const int64_t tasks = work < kLittle ? 1 : threads;
  const bool by_rows = shape.m >= 2 * Form::kRows * tasks || panels < tasks;
  const int64_t scratch_each = int_gemm_scratch_bytes(shape.k, 1) / 64 * 64;
  parallel_for(threads, tasks, [&](int64_t task) {
    Share share{0, shape.m, 0, panels};
    if (by_rows) {
      share.row0 = shape.m * task / tasks, share.row1 = shape.m * (task + 1) / tasks;
    } else {
      share.panel0 = panels * task / tasks, share.panel1 = panels * (task + 1) / tasks;
    }
    multiply_share<Form>(job, finisher, share, scratch + task * scratch_each);
  });
}

void multiply_int(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                  const IntGemmFinish& finish, std::byte* scratch, int threads) {
  with_form_for(shape.m, shape.k, [&](auto form) {
    multiply_as<decltype(form)>(shape, a, packed, c, finish, scratch, threads);
  });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(format_number);
HWY_EXPORT(packed_size);
HWY_EXPORT(scratch_needed);
HWY_EXPORT(pack_panels);
HWY_EXPORT(multiply_int);
}  // namespace

int int_gemm_format() {
  return HWY_DYNAMIC_DISPATCH(format_number)();
}

IntGemmScratch int_gemm_scratch() {
  return HWY_DYNAMIC_DISPATCH(scratch_needed)();
}

size_t int_gemm_packed_bytes(int64_t k, int64_t n) {
  return (static_cast<size_t>(HWY_DYNAMIC_DISPATCH(packed_size)(k, n)) + 63) / 64 * 64;
}

void int_gemm_pack(int64_t k, int64_t n, const IntGemmRight& b, void* packed) {
  HWY_DYNAMIC_DISPATCH(pack_panels)(k, n, b, static_cast<int8_t*>(packed));
}

void int_gemm(GemmShape shape, const IntGemmLeft& a, const void* packed_b, const IntGemmOutput& c,
              const IntGemmFinish& finish, void* scratch, int threads) {
  HWY_DYNAMIC_DISPATCH(multiply_int)
  (shape, a, packed_b, c, finish, static_cast<std::byte*>(scratch), threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
