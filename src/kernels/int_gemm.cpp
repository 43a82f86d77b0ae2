#include "kernels/int_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int_gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/int_gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Packed: panel after panel, each [groups][kIntPanel][kGroup] of B as signed bytes; then the sums of the
// columns of what is stored. Unsigned elements are stored less 128.
template <typename Form>
HWY_INLINE int64_t group_count(int64_t k) {
  return (k + Form::kGroup - 1) / Form::kGroup;
}
template <typename Form>
HWY_INLINE int64_t panel_bytes(int64_t k) {
  return group_count<Form>(k) * Form::kGroup * kIntPanel;
}
HWY_INLINE int64_t int_panels(int64_t n) {
  return (n + kIntPanel - 1) / kIntPanel;
}

template <typename Form>
HWY_INLINE int64_t size_packed(int64_t k, int64_t n) {
  return int_panels(n) * (panel_bytes<Form>(k) + kIntPanel * int64_t{sizeof(int32_t)});
}

int64_t packed_size(int64_t k, int64_t n) {
  return with_form([&](auto form) { return size_packed<decltype(form)>(k, n); });
}

int format_number() {
  return with_form([](auto form) { return static_cast<int>(kIntPanel * 8 + decltype(form)::kGroup); });
}

template <typename Form>
void pack_as(int64_t k, int64_t n, const IntGemmRight& b, int8_t* packed) {
  constexpr int64_t kGroup = Form::kGroup;
  const auto* from = static_cast<const uint8_t*>(b.data);
  const uint8_t flip = b.is_signed ? 0 : 0x80;
  auto* sums = reinterpret_cast<int32_t*>(packed + int_panels(n) * panel_bytes<Form>(k));
  std::memset(packed, 0, static_cast<size_t>(size_packed<Form>(k, n)));
  for (int64_t panel = 0; panel < int_panels(n); ++panel) {
    const int64_t col0 = panel * kIntPanel, cols = std::min(kIntPanel, n - col0);
    int8_t* to = packed + panel * panel_bytes<Form>(k);
    for (int64_t i = 0; i < k; ++i) {
      int8_t* group = to + i / kGroup * kGroup * kIntPanel + i % kGroup;
      const uint8_t* row =
          from + i / b.block * b.block_stride + i % b.block * b.row_stride + col0 * b.col_stride;
      for (int64_t col = 0; col < cols; ++col) {
        const auto value = static_cast<int8_t>(row[col * b.col_stride] ^ flip);
        group[col * kGroup] = value;
        sums[col0 + col] += value;
      }
    }
  }
}

void pack_panels(int64_t k, int64_t n, const IntGemmRight& b, int8_t* packed) {
  with_form([&](auto form) { pack_as<decltype(form)>(k, n, b, packed); });
}

// ---- rows of A ---------------------------------------------------------------------------------------

constexpr int64_t kBlockRows = 48;  // a multiple of the rows of a tile

// One thread's share of scratch.
template <typename Form>
struct Block {
  typename Form::Left* rows;  // kBlockRows of `stride` elements
  int64_t stride;
  uint32_t* sums;
  uint8_t* row;  // as read
};

template <typename Form>
Block<Form> block_in(std::byte* scratch, int64_t k) {
  using Left = typename Form::Left;
  // kBlockRows * stride elements, kBlockRows sums and a row fit IntGemmScratch.
  static_assert(kBlockRows * sizeof(Left) + 1 <= IntGemmScratch::kPerK);
  static_assert(kBlockRows * (32 + Form::kGroup) * sizeof(Left) + kBlockRows * 4 + 64 <=
                IntGemmScratch::kBase);
  static_assert(kBlockRows % Form::kRows == 0);
  Block<Form> block;
  block.stride = (group_count<Form>(k) * Form::kGroup + 31) / 32 * 32;
  block.rows = reinterpret_cast<Left*>(scratch);
  block.sums = reinterpret_cast<uint32_t*>(block.rows + kBlockRows * block.stride);
  block.row = reinterpret_cast<uint8_t*>(block.sums + kBlockRows);
  return block;
}

// Elements become unsigned: signed ones are stored plus 128.
template <typename Form>
void load_rows(const IntGemmLeft& a, int64_t k, int64_t row0, int64_t rows, const Block<Form>& block) {
  using Left = typename Form::Left;
  const uint8_t flip = a.is_signed ? 0x80 : 0;
  const auto* data = static_cast<const uint8_t*>(a.data);
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* from = data + (row0 + r) * a.row_stride;
    if (a.read_row != nullptr) {
      a.read_row(a.context, row0 + r, block.row);
      from = block.row;
    } else if (a.col_stride != 1) {
      for (int64_t i = 0; i < k; ++i) block.row[i] = from[i * a.col_stride];
      from = block.row;
    }
    Left* to = block.rows + r * block.stride;
    uint32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const auto value = static_cast<uint8_t>(from[i] ^ flip);
      to[i] = static_cast<Left>(value);
      sum += value;
    }
    for (int64_t i = k; i < group_count<Form>(k) * Form::kGroup; ++i) to[i] = 0;
    block.sums[r] = sum;
  }
}

// ---- results -----------------------------------------------------------------------------------------

// What the columns of a panel need, padded to whole vectors.
struct Columns {
  HWY_ALIGN int32_t sums[kIntPanel];
  HWY_ALIGN int32_t zeros[kIntPanel];
  HWY_ALIGN int32_t bias[kIntPanel];
  HWY_ALIGN float scales[kIntPanel];
  HWY_ALIGN float float_bias[kIntPanel];
  int64_t count;
};

struct IntJob {
  GemmShape shape;
  IntGemmLeft a;
  const int8_t* b;
  const int32_t* sums;
  IntGemmOutput c;
  IntGemmFinish finish;
};

void load_columns(const IntJob& job, int64_t panel, Columns& columns) {
  const IntGemmFinish& f = job.finish;
  const int64_t col = panel * kIntPanel;
  const int32_t shift = f.b_signed ? 0 : 128;
  columns.count = std::min(kIntPanel, job.shape.n - col);
  for (int64_t i = 0; i < kIntPanel; ++i) {
    const int64_t at = col + std::min(i, columns.count - 1);
    columns.sums[i] = job.sums[at];
    columns.zeros[i] = (f.b_zero_points != nullptr ? f.b_zero_points[at] : f.b_zero_point) - shift;
    columns.bias[i] = f.bias != nullptr ? f.bias[at] : 0;
    columns.scales[i] = f.scales != nullptr ? f.scales[at] : f.scale;
    columns.float_bias[i] = f.float_bias != nullptr ? f.float_bias[at] : 0;
  }
}

// sum - a_zero * column_sum - b_zero * (row_sum - k * a_zero) + bias
HWY_INLINE IntVec corrected(const Columns& c, const int32_t* sums, int64_t i, IntVec a_zero, IntVec rest) {
  const IntTag d;
  const IntVec product = hn::Sub(hn::Load(d, sums + i), hn::Mul(a_zero, hn::Load(d, c.sums + i)));
  return hn::Add(hn::Sub(product, hn::Mul(rest, hn::Load(d, c.zeros + i))), hn::Load(d, c.bias + i));
}

template <typename T>
void write_row(const Columns& c, const T* values, void* row) {
  std::memcpy(row, values, static_cast<size_t>(c.count) * sizeof(T));
}

// One row of a tile, from its sums to memory.
void finish_row(const IntJob& job, const Columns& c, const int32_t* sums, int32_t a_zero, uint32_t row_sum,
                std::byte* row) {
  const IntTag d;
  const hn::RebindToFloat<IntTag> df;
  const auto rest = row_sum - static_cast<uint32_t>(job.shape.k) * static_cast<uint32_t>(a_zero);
  const IntVec zero = hn::Set(d, a_zero), left = hn::Set(d, static_cast<int32_t>(rest));
  HWY_ALIGN int32_t whole[kIntPanel];
  HWY_ALIGN float real[kIntPanel];
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (job.c.type == IntGemmResult::kInt32) {
    for (int64_t i = 0; i < kIntPanel; i += lanes) hn::Store(corrected(c, sums, i, zero, left), d, whole + i);
    return write_row(c, whole, row);
  }
  if (job.c.type == IntGemmResult::kFloat) {
    for (int64_t i = 0; i < kIntPanel; i += lanes) {
      const auto value = hn::ConvertTo(df, corrected(c, sums, i, zero, left));
      hn::Store(hn::Add(hn::Mul(value, hn::Load(df, c.scales + i)), hn::Load(df, c.float_bias + i)), df,
                real + i);
    }
    return write_row(c, real, row);
  }
  const int32_t least = job.c.type == IntGemmResult::kInt8 ? -128 : 0;
  const auto low = hn::Set(df, static_cast<float>(least - job.finish.zero_point));
  const auto high = hn::Set(df, static_cast<float>(least + 255 - job.finish.zero_point));
  for (int64_t i = 0; i < kIntPanel; i += lanes) {
    const auto value =
        hn::Mul(hn::ConvertTo(df, corrected(c, sums, i, zero, left)), hn::Load(df, c.scales + i));
    const auto rounded = hn::NearestInt(hn::Min(hn::Max(value, low), high));
    hn::Store(hn::Add(rounded, hn::Set(d, job.finish.zero_point)), d, whole + i);
  }
  HWY_ALIGN uint8_t bytes[kIntPanel];
  for (int64_t i = 0; i < kIntPanel; ++i) bytes[i] = static_cast<uint8_t>(whole[i]);
  write_row(c, bytes, row);
}

// ---- the product -------------------------------------------------------------------------------------

// The rows of a block against the panels [panel0, panel1).
template <typename Form>
void run_block(const IntJob& job, const Block<Form>& block, int64_t row0, int64_t rows, int64_t panel0,
               int64_t panel1) {
  const int64_t width = job.c.type == IntGemmResult::kInt32 || job.c.type == IntGemmResult::kFloat ? 4 : 1;
  const int32_t shift = job.a.is_signed ? 128 : 0;
  const int64_t tiles = (rows + Form::kRows - 1) / Form::kRows;
  Columns columns;
  HWY_ALIGN int32_t sums[Form::kRows * kIntPanel];
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    load_columns(job, panel, columns);
    const int8_t* b = job.b + panel * panel_bytes<Form>(job.shape.k);
    for (int64_t i = 0, row = 0; i < tiles; ++i) {
      const int64_t count = rows / tiles + (i < rows % tiles ? 1 : 0);
      kIntTiles<Form>[static_cast<size_t>(count - 1)](block.rows + row * block.stride, block.stride, b,
                                                      group_count<Form>(job.shape.k), sums);
      for (int64_t r = 0; r < count; ++r, ++row) {
        const int64_t at = row0 + row;
        const int32_t zero =
            shift + (job.a.zero_points != nullptr ? job.a.zero_points[at] : job.a.zero_point);
        finish_row(job, columns, sums + r * kIntPanel, zero, block.sums[row],
                   static_cast<std::byte*>(job.c.data) + (at * job.c.row_stride + panel * kIntPanel) * width);
      }
    }
  }
}

template <typename Form>
void multiply_as(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                 const IntGemmFinish& finish, std::byte* scratch, int threads) {
  if (shape.m == 0 || shape.n == 0) return;
  const int64_t panels = int_panels(shape.n);
  const auto* b = static_cast<const int8_t*>(packed);
  const IntJob job{shape, a,     b, reinterpret_cast<const int32_t*>(b + panels * panel_bytes<Form>(shape.k)),
                   c,     finish};
  const int64_t work = shape.m * shape.n * std::max<int64_t>(shape.k, 1);
  const int64_t tasks = work < 100000 ? 1 : threads;
  const bool by_rows = shape.m >= 2 * Form::kRows * tasks || panels < tasks;
  const int64_t share = int_gemm_scratch_bytes(shape.k, 1) / 64 * 64;
  parallel_for(threads, tasks, [&](int64_t task) {
    const int64_t row0 = by_rows ? shape.m * task / tasks : 0;
    const int64_t row1 = by_rows ? shape.m * (task + 1) / tasks : shape.m;
    const int64_t panel0 = by_rows ? 0 : panels * task / tasks;
    const int64_t panel1 = by_rows ? panels : panels * (task + 1) / tasks;
    const Block<Form> block = block_in<Form>(scratch + task * share, shape.k);
    for (int64_t row = row0; row < row1; row += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, row1 - row);
      load_rows(a, shape.k, row, rows, block);
      run_block(job, block, row, rows, panel0, panel1);
    }
  });
}

void multiply_int(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                  const IntGemmFinish& finish, std::byte* scratch, int threads) {
  with_form([&](auto form) { multiply_as<decltype(form)>(shape, a, packed, c, finish, scratch, threads); });
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(format_number);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack_panels);
HWY_EXPORT(multiply_int);
}  // namespace

int int_gemm_format() {
  return HWY_DYNAMIC_DISPATCH(format_number)();
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
