#include "kernels/int_gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int_gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/int_finish-inl.h"
#include "kernels/int_gemm_pack-inl.h"
#include "kernels/int_gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

int64_t packed_size(int64_t k, int64_t n) {
  return with_form([&](auto form) { return size_packed<decltype(form)>(k, n); });
}

constexpr IntGemmScratch kScratch = {HWY_TARGET == HWY_AVX2 ? 165 : 98, 13312};

IntGemmScratch scratch_needed() {
  return kScratch;
}

int format_number() {
  return with_form([](auto form) { return static_cast<int>(kIntPanel * 8 + decltype(form)::kGroup); });
}

void pack_panels(int64_t k, int64_t n, const IntGemmRight& b, int8_t* packed) {
  with_form([&](auto form) { pack_as<decltype(form)>(k, n, b, packed); });
}

// ---- rows of A ---------------------------------------------------------------------------------------

// One thread's share of scratch.
template <typename Form>
struct Block {
  typename Form::Left* rows;  // Form::kBlockRows of `stride` elements
  int64_t stride;
  uint32_t* sums;
  uint8_t* row;                 // as read
  typename Form::Right* panel;  // of B, where the form has it wider than it is packed
};

template <typename Form>
inline constexpr bool kWidensPanels = sizeof(typename Form::Right) > 1;

template <typename Form>
Block<Form> block_in(std::byte* scratch, int64_t k) {
  using Left = typename Form::Left;
  constexpr int64_t kBlockRows = Form::kBlockRows;
  // kBlockRows * stride elements, kBlockRows sums, a row and a wide panel fit kScratch.
  constexpr int64_t kWide = kWidensPanels<Form> ? kIntPanel * int64_t{sizeof(typename Form::Right)} : 0;
  static_assert(kBlockRows * sizeof(Left) + 1 + kWide <= kScratch.per_k);
  static_assert(kBlockRows * (Form::kGroup + 62 + 64 / sizeof(Left)) * sizeof(Left) + kBlockRows * 4 +
                    kWide * Form::kGroup + 128 <=
                kScratch.base);
  static_assert(kBlockRows % Form::kRows == 0);
  Block<Form> block;
  block.stride = (k + Form::kGroup - 1 + 63) / 64 * 64;
  // Rows that lie a power of two apart would share their place in the cache.
  if (block.stride * int64_t{sizeof(Left)} % 512 == 0) block.stride += 64 / int64_t{sizeof(Left)};
  block.rows = reinterpret_cast<Left*>(scratch);
  block.sums = reinterpret_cast<uint32_t*>(block.rows + kBlockRows * block.stride);
  block.row = reinterpret_cast<uint8_t*>(block.sums + kBlockRows);
  const auto behind = reinterpret_cast<uintptr_t>(block.row + k);
  block.panel = reinterpret_cast<typename Form::Right*>((behind + 63) / 64 * 64);
  return block;
}

// Elements become as wide as the form has them, and `flip` makes signed ones unsigned, plus 128. What is
// behind them, up to a whole group, is zero. May be done in place.
HWY_INLINE void widen_row(const uint8_t* from, int64_t k, uint8_t flip, int64_t whole, uint8_t* to) {
  const auto by = [&](auto d, int64_t i) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto bits = hn::Set(d, flip);
    for (; i + lanes <= k; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), bits), d, to + i);
    return i;
  };
  int64_t i = flip == 0 && from == to ? k : by(hn::FixedTag<uint8_t, 8>(), by(hn::ScalableTag<uint8_t>(), 0));
  for (; i < k; ++i) to[i] = static_cast<uint8_t>(from[i] ^ flip);
  for (; i < whole; ++i) to[i] = 0;
}

HWY_INLINE void widen_row(const uint8_t* from, int64_t k, uint8_t flip, int64_t whole, int16_t* to) {
  const auto by = [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto bits = hn::Set(d8, flip);
    for (; i + lanes <= k; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::Xor(hn::LoadU(d8, from + i), bits)), d, to + i);
    return i;
  };
  int64_t i = by(hn::FixedTag<int16_t, 8>(), by(hn::ScalableTag<int16_t>(), 0));
  for (; i < k; ++i) to[i] = static_cast<int16_t>(from[i] ^ flip);
  for (; i < whole; ++i) to[i] = 0;
}

HWY_INLINE uint32_t sum_of_row(const int16_t* row, int64_t k, bool) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += static_cast<uint32_t>(row[i]);
  return sum;
}

HWY_INLINE uint32_t sum_of_row(const uint8_t* row, int64_t k, bool is_signed) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t flip = is_signed ? 0x80 : 0;  // taken plus 128
  auto all = hn::Zero(d64);
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes)
    all = hn::Add(all, hn::SumsOf8(hn::Xor(hn::LoadU(d, row + i), hn::Set(d, flip))));
  auto sum = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64, all)));
  for (; i < k; ++i) sum += static_cast<uint8_t>(row[i] ^ flip);
  return is_signed ? sum - 128 * static_cast<uint32_t>(k) : sum;
}

template <typename Form>
void load_rows(const IntGemmLeft& a, int64_t k, int64_t row0, int64_t rows, bool with_sums,
               const Block<Form>& block) {
  const uint8_t flip = a.is_signed && !Form::kTakesSigned ? 0x80 : 0;
  const auto* data = static_cast<const uint8_t*>(a.data);
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* from = data + (row0 + r) * a.row_stride;
    typename Form::Left* to = block.rows + r * block.stride;
    if (a.read_row != nullptr) {
      uint8_t* row = sizeof(typename Form::Left) == 1 ? reinterpret_cast<uint8_t*>(to) : block.row;
      a.read_row(a.context, row0 + r, row);
      from = row;
    } else if (a.col_stride != 1) {
      for (int64_t i = 0; i < k; ++i) block.row[i] = from[i * a.col_stride];
      from = block.row;
    }
    widen_row(from, k, flip, group_count<Form>(k) * Form::kGroup, to);
    if (with_sums) block.sums[r] = sum_of_row(to, k, a.is_signed && Form::kTakesSigned);
  }
}

// ---- results -----------------------------------------------------------------------------------------

// What the columns of a panel need, padded to whole vectors.
struct Columns {
  HWY_ALIGN int32_t first[kIntPanel];  // what their sums start with
  HWY_ALIGN int32_t sums[kIntPanel];
  HWY_ALIGN int32_t zeros[kIntPanel];
  HWY_ALIGN float scales[kIntPanel];
  HWY_ALIGN float float_bias[kIntPanel];
  int64_t count;
  bool has_small_scales;
};

struct IntJob {
  GemmShape shape;
  IntGemmLeft a;
  const int8_t* b;
  const int32_t* sums;
  IntGemmOutput c;
  const IntGemmFinish* finish;
  int32_t lift;  // what the form takes elements of A plus
  bool a_rows;   // rows of A have zero points of their own
  bool b_zero;   // B has zero points, which the sums of A's rows are multiplied by
};

template <typename T>
HWY_INLINE void fill_columns(const T* list, int64_t count, T one, T* to) {
  if (list == nullptr) {
    for (int64_t i = 0; i < kIntPanel; ++i) to[i] = one;
    return;
  }
  if (count == kIntPanel) {
    std::memcpy(to, list, kIntPanel * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = list[i];
  for (int64_t i = count; i < kIntPanel; ++i) to[i] = list[0];
}

// A product is sum - a_zero * column_sum - b_zero * (row_sum - k * a_zero) + bias. What does not depend on
// the row, the sums start with.
void load_columns(const IntJob& job, int64_t panel, Columns& columns) {
  const IntGemmFinish& f = *job.finish;
  const int64_t col = panel * kIntPanel;
  columns.count = std::min(kIntPanel, job.shape.n - col);
  const auto from = [&](const auto* list) { return list != nullptr ? list + col : nullptr; };
  fill_columns(from(f.bias), columns.count, 0, columns.first);
  fill_columns(from(f.scales), columns.count, f.scale, columns.scales);
  fill_columns(from(f.float_bias), columns.count, 0.0f, columns.float_bias);
  columns.has_small_scales = IntFinisher::has_small_scales(columns.scales, kIntPanel);
  fill_columns(from(job.sums), columns.count, 0, columns.sums);
  fill_columns(from(f.b_zero_points), columns.count, f.b_zero_point, columns.zeros);
  for (int32_t& zero : columns.zeros) zero -= f.b_signed ? 0 : 128;
  if (job.a_rows) return;
  const int32_t a_zero = job.a.zero_point + job.lift;
  const IntTag d;
  const IntVec by = hn::Set(d, a_zero);
  const IntVec all =
      hn::Set(d, static_cast<int32_t>(static_cast<uint32_t>(job.shape.k) * static_cast<uint32_t>(a_zero)));
  for (int64_t i = 0; i < kIntPanel; i += kIntLanes) {
    const IntVec less = hn::Mul(by, hn::Load(d, columns.sums + i));
    const IntVec more = hn::Mul(all, hn::Load(d, columns.zeros + i));
    hn::Store(hn::Add(hn::Sub(hn::Load(d, columns.first + i), less), more), d, columns.first + i);
  }
}

// Adds what depends on the row.
void correct_row(const IntJob& job, const Columns& c, int64_t row, uint32_t row_sum, int32_t* sums) {
  const IntTag d;
  const int32_t own = job.a_rows ? job.a.zero_points[row] + job.lift : 0;
  const auto rest = row_sum - static_cast<uint32_t>(job.shape.k) * static_cast<uint32_t>(own);
  const IntVec zero = hn::Set(d, own), left = hn::Set(d, static_cast<int32_t>(rest));
  for (int64_t i = 0; i < kIntPanel; i += kIntLanes) {
    const IntVec sum = hn::Sub(hn::Load(d, sums + i), hn::Mul(zero, hn::Load(d, c.sums + i)));
    hn::Store(hn::Sub(sum, hn::Mul(left, hn::Load(d, c.zeros + i))), d, sums + i);
  }
}

// ---- the product -------------------------------------------------------------------------------------

// Rows of A as the form has them.
template <typename Form>
struct Rows {
  const typename Form::Left* data;
  int64_t stride;
  int64_t readable;  // so many from `data` on
  const uint32_t* sums;
};

// A tile of sums on its way to results, some rows at a time: AMX multiplies the next one in the meantime.
class SumsTile {
 public:
  SumsTile(const IntJob& job, const IntFinisher& finisher)
      : job_(job),
        finisher_(finisher),
        width_(job.c.type == IntGemmResult::kInt32 || job.c.type == IntGemmResult::kFloat ? 4 : 1) {}

  void set(const Columns& columns, int32_t* sums, const uint32_t* row_sums, int64_t row, int64_t rows,
           int64_t col) {
    columns_ = &columns, sums_ = sums, row_sums_ = row_sums;
    row_ = row, rows_ = rows, col_ = col;
  }

  void finish(int64_t most_rows) {
    const int64_t count = std::min(rows_, most_rows);
    if (count == 0) return;
    if (job_.a_rows || job_.b_zero) {
      for (int64_t r = 0; r < count; ++r)
        correct_row(job_, *columns_, row_ + r, row_sums_[r], sums_ + r * kIntPanel);
      row_sums_ += count;
    }
    const IntGemmAddend& z = job_.finish->addend;
    finisher_.tile({sums_, kIntPanel, count, columns_->count, columns_->scales, columns_->float_bias,
                    columns_->has_small_scales,
                    static_cast<const uint8_t*>(z.data) + row_ * z.row_stride + col_,
                    static_cast<std::byte*>(job_.c.data) + (row_ * job_.c.row_stride + col_) * width_,
                    job_.c.row_stride * width_});
    sums_ += count * kIntPanel, row_ += count, rows_ -= count;
  }

 private:
  const IntJob& job_;
  const IntFinisher& finisher_;
  const int64_t width_;
  const Columns* columns_ = nullptr;
  int32_t* sums_ = nullptr;
  const uint32_t* row_sums_ = nullptr;
  int64_t row_ = 0, rows_ = 0, col_ = 0;
};

// A panel as the form multiplies it.
template <typename Form>
HWY_INLINE const typename Form::Right* panel_of(const IntJob& job, int64_t panel,
                                                typename Form::Right* wide) {
  const int64_t size = panel_bytes<Form>(job.shape.k);
  const int8_t* b = job.b + panel * size;
  if constexpr (kWidensPanels<Form>) {
    const hn::ScalableTag<int16_t> d;
    const hn::Rebind<int8_t, decltype(d)> d8;
    for (int64_t i = 0; i < size; i += kIntPanel)
      hn::Store(hn::PromoteTo(d, hn::LoadU(d8, b + i)), d, wide + i);
    return wide;
  } else {
    return b;
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
  int64_t turn = 0;
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    Columns& own = columns[panel % 2];
    load_columns(job, panel, own);
    const typename Form::Right* b = panel_of<Form>(job, panel, wide);
    const int64_t vectors = own.count > kIntLanes ? 2 : 1;
    for (int64_t i = 0, row = 0; i < tiles; ++i, turn ^= 1) {
      const int64_t count = Form::rows_of_tile(rows - row, tiles - i);
      // A form that reads more rows than it was asked for begins with earlier ones where there are no later.
      const int64_t before = std::max<int64_t>(0, row + Form::rows_read(count) - a.readable);
      runner.tile(a.data + (row - before) * a.stride, a.stride, b, own.first, sums[turn], count, vectors,
                  [&](int64_t some) { last.finish(some); });
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
  if (job.a.read_row != nullptr || job.a.col_stride != 1 || job.b_zero || job.a_rows) return false;
  const int64_t whole = Form::packed_groups(group_count<Form>(job.shape.k)) * Form::kGroup;
  if (Form::kReadsAhead)  // behind a row, into the next; and whole tiles of rows
    return job.shape.m >= Form::kRows && (whole == job.shape.k || row + rows + Form::kRows <= job.shape.m);
  return !job.a.is_signed && job.shape.k % Form::kGroup == 0 && job.a.row_stride % 2048 != 0;
}

template <typename Form>
void multiply_as(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                 const IntGemmFinish& finish, std::byte* scratch, int threads) {
  if (shape.m == 0 || shape.n == 0) return;
  const int64_t panels = int_panels(shape.n);
  const auto* b = static_cast<const int8_t*>(packed);
  const auto* sums = reinterpret_cast<const int32_t*>(b + panels * panel_bytes<Form>(shape.k));
  const int32_t lift = a.is_signed && !Form::kTakesSigned ? 128 : 0;
  const IntJob job{
      shape, a, b, sums, c, &finish, lift, a.zero_points != nullptr, has_b_zero(finish, shape.n)};
  const IntFinisher finisher(c.type, finish);
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
    const typename Form::Runner runner(group_count<Form>(shape.k), a.is_signed);
    for (int64_t row = row0, rows = 0; row < row1; row += rows) {
      rows = next_rows<Form>(row1 - row, Form::block_rows(shape.k));
      bool in_place = is_in_place<Form>(job, row, rows);
      if (!in_place && rows > Form::kBlockRows) {
        rows = next_rows<Form>(row1 - row, Form::kBlockRows);
        in_place = is_in_place<Form>(job, row, rows);
      }
      if (in_place) {
        const void* from = static_cast<const uint8_t*>(a.data) + row * a.row_stride;
        const Rows<Form> lie{static_cast<const typename Form::Left*>(from), a.row_stride, shape.m - row,
                             nullptr};
        run_block<Form>(job, finisher, runner, lie, block.panel, row, rows, panel0, panel1);
      } else {
        load_rows(a, shape.k, row, rows, job.a_rows || job.b_zero, block);
        run_block<Form>(job, finisher, runner, {block.rows, block.stride, Form::kBlockRows, block.sums},
                        block.panel, row, rows, panel0, panel1);
      }
    }
  });
}

void multiply_int(GemmShape shape, const IntGemmLeft& a, const void* packed, const IntGemmOutput& c,
                  const IntGemmFinish& finish, std::byte* scratch, int threads) {
  const bool is_small = with_form([&](auto form) {
    return is_packed_small<decltype(form)>(shape.k, shape.n, static_cast<const int8_t*>(packed));
  });
  with_form_for(shape.m, shape.k, is_small, [&](auto form) {
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
