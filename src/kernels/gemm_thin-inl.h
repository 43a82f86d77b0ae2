// One or two rows by a matrix that comes at run time, once per target: packing it would cost more than the
// product.
#if defined(PLIMSOLL_KERNELS_GEMM_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_THIN_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_THIN_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_THIN_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "base/checked.h"
#include "kernels/gemm_plan-inl.h"
#include "kernels/gemm_tile-inl.h"
#include "kernels/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

inline constexpr int kThinVectors = 8;
// Columns that are finished together.
template <class T>
inline constexpr int64_t kThinColumns = kThinVectors* kLanesOf<T>;

// sums[j] = a * columns [0, cols) of rows of B that lie side by side.
template <class T, int kVecs>
void add_rows(int64_t k, const GemmLeft<T>& a, const T* b, int64_t b_stride, int64_t cols, T* sums) {
  const TagOf<T> d;
  const Lanes<T> last(cols - (kVecs - 1) * kLanesOf<T>);
  VecOf<T> acc[kVecs];
  HWY_UNROLL(8)
  for (int v = 0; v < kVecs; ++v) acc[v] = hn::Zero(d);
  for (int64_t i = 0; i < k; ++i) {
    const VecOf<T> value = hn::Set(d, a.data[i * a.col_stride]);
    const T* row = b + i * b_stride;
    HWY_UNROLL(8)
    for (int v = 0; v + 1 < kVecs; ++v)
      acc[v] = hn::MulAdd(value, load_all(d, row + v * kLanesOf<T>), acc[v]);
    acc[kVecs - 1] = hn::MulAdd(value, last.load(row + (kVecs - 1) * kLanesOf<T>), acc[kVecs - 1]);
  }
  HWY_UNROLL(8)
  for (int v = 0; v < kVecs; ++v) hn::Store(acc[v], d, sums + v * kLanesOf<T>);
}

// sums[j] = a . column j of B, whose elements lie side by side.
template <class T>
void dot_columns(int64_t k, const T* a, const T* b, int64_t b_stride, int64_t cols, T* sums) {
  const TagOf<T> d;
  const int64_t whole = k / kLanesOf<T> * kLanesOf<T>;
  for (int64_t col = 0; col < cols; ++col) {
    const T* column = b + col * b_stride;
    VecOf<T> even = hn::Zero(d), odd = hn::Zero(d);
    int64_t i = 0;
    for (; i + 2 * kLanesOf<T> <= whole; i += 2 * kLanesOf<T>) {
      even = hn::MulAdd(load_all(d, a + i), load_all(d, column + i), even);
      odd = hn::MulAdd(load_all(d, a + i + kLanesOf<T>), load_all(d, column + i + kLanesOf<T>), odd);
    }
    for (; i < whole; i += kLanesOf<T>) even = hn::MulAdd(load_all(d, a + i), load_all(d, column + i), even);
    if (i < k) odd = hn::MulAdd(load_lanes(a + i, k - i), load_lanes(column + i, k - i), odd);
    sums[col] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  }
}

template <class T>
void thin_columns(int64_t k, const GemmLeft<T>& a, const T* b, const GemmRight& right, int64_t cols,
                  T* sums) {
  if (right.col_stride != 1) return dot_columns<T>(k, a.data, b, right.col_stride, cols, sums);
  const int64_t vectors = ceil_div(cols, kLanesOf<T>);
  if (vectors > 4) {
    add_rows<T, 4>(k, a, b, right.row_stride, 4 * kLanesOf<T>, sums);
    return thin_columns<T>(k, a, b + 4 * kLanesOf<T>, right, cols - 4 * kLanesOf<T>, sums + 4 * kLanesOf<T>);
  }
  constexpr decltype(&add_rows<T, 1>) kFunctions[] = {&add_rows<T, 1>, &add_rows<T, 2>, &add_rows<T, 3>,
                                                      &add_rows<T, 4>};
  kFunctions[vectors - 1](k, a, b, right.row_stride, cols, sums);
}

// The rows of A, or the columns of B, lie side by side where B's rows do not.
template <class T>
void multiply_thin(GemmShape shape, const GemmLeft<T>& a, const GemmRight& b, const GemmOutput<T>& c,
                   const GemmEpilogue<T>& epilogue, int threads) {
  if constexpr (!kIsHalf<T>) {
    const int64_t pieces = ceil_div(shape.n, kThinColumns<T>);
    parallel_for(shape.m * shape.k * shape.n >= kSerialWork ? threads : 1, pieces, [&](int64_t piece) {
      HWY_ALIGN T sums[kThinColumns<T>];
      const int64_t col = piece * kThinColumns<T>, cols = std::min(kThinColumns<T>, shape.n - col);
      for (int64_t row = 0; row < shape.m; ++row) {
        const GemmLeft<T> left{a.data + row * a.row_stride, a.row_stride, a.col_stride};
        thin_columns<T>(shape.k, left, static_cast<const T*>(b.data) + col * b.col_stride, b, cols, sums);
        GemmEpilogue<T> e = epilogue;
        if (e.bias != nullptr) e.bias += col;
        if (e.addend != nullptr) e.addend += row * e.addend_stride + col;
        finish_tile<T>(e, 1, cols, sums, 0, c.data + row * c.row_stride + col, c.row_stride);
      }
    });
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
