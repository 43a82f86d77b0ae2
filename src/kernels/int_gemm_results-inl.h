// From a tile's sums to results: what columns and rows add to them, once per target.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_RESULTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_RESULTS_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_RESULTS_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_RESULTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_finish-inl.h"
#include "kernels/int_gemm.h"
#include "kernels/int_gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// What the columns of a panel need, padded to whole vectors.
struct Columns {
  HWY_ALIGN int32_t first[kIntPanel];  // what their sums start with
  HWY_ALIGN int32_t sums[kIntPanel];
  HWY_ALIGN int32_t zeros[kIntPanel];
  HWY_ALIGN float scales[kIntPanel];
  HWY_ALIGN float float_bias[kIntPanel];
  int64_t count;
  bool has_small_scales, has_one_zero;  // zeros are equal
};

struct IntJob {
  GemmShape shape;
  IntGemmLeft a;
  const int8_t* b;
  const int32_t* sums;
  IntGemmOutput c;
  const IntGemmFinish* finish;
  int32_t lift, b_lift;  // what the form takes elements of A and of B plus
  bool a_rows;           // rows of A have zero points of their own
  bool b_zero;           // B has zero points, which the sums of A's rows are multiplied by
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
inline void load_columns(const IntJob& job, int64_t panel, Columns& columns) {
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
  for (int32_t& zero : columns.zeros) zero += job.b_lift - (f.b_signed ? 0 : 128);
  columns.has_one_zero = f.b_zero_points == nullptr;
  const auto lifted =
      static_cast<int32_t>(static_cast<uint32_t>(job.shape.k) * static_cast<uint32_t>(job.b_lift));
  if (lifted != 0) {
    for (int32_t& sum : columns.sums) sum += lifted;
  }
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
inline void correct_row(const IntJob& job, const Columns& c, int64_t row, uint32_t row_sum, int32_t* sums) {
  const IntTag d;
  const int32_t own = job.a_rows ? job.a.zero_points[row] + job.lift : 0;
  const auto rest = row_sum - static_cast<uint32_t>(job.shape.k) * static_cast<uint32_t>(own);
  if (!job.a_rows && c.has_one_zero) {
    const IntVec less = hn::Set(d, static_cast<int32_t>(rest * static_cast<uint32_t>(c.zeros[0])));
    for (int64_t i = 0; i < kIntPanel; i += kIntLanes)
      hn::Store(hn::Sub(hn::Load(d, sums + i), less), d, sums + i);
    return;
  }
  const IntVec zero = hn::Set(d, own), left = hn::Set(d, static_cast<int32_t>(rest));
  for (int64_t i = 0; i < kIntPanel; i += kIntLanes) {
    const IntVec sum = hn::Sub(hn::Load(d, sums + i), hn::Mul(zero, hn::Load(d, c.sums + i)));
    hn::Store(hn::Sub(sum, hn::Mul(left, hn::Load(d, c.zeros + i))), d, sums + i);
  }
}

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

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
