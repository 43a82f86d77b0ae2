#include "kernels/reduce.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/min_max-inl.h"
#include "kernels/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// The instructions return the second operand on NaN, so that a NaN that has come in must be kept.
struct Max {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::IfThenElse(hn::IsNaN(sum), sum, v_max(sum, v));
  }
  template <class D>
  static HWY_INLINE hn::TFromD<D> of_lanes(D d, hn::Vec<D> v) {
    return hn::AllFalse(d, hn::IsNaN(v)) ? hn::GetLane(hn::MaxOfLanes(d, v)) : kNotANumber;
  }
};
struct Min {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::IfThenElse(hn::IsNaN(sum), sum, v_min(sum, v));
  }
  template <class D>
  static HWY_INLINE hn::TFromD<D> of_lanes(D d, hn::Vec<D> v) {
    return hn::AllFalse(d, hn::IsNaN(v)) ? hn::GetLane(hn::MinOfLanes(d, v)) : kNotANumber;
  }
};
struct Product {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::Mul(sum, v);
  }
  template <class D>
  static HWY_INLINE hn::TFromD<D> of_lanes(D d, hn::Vec<D> v) {
    HWY_ALIGN hn::TFromD<D> lane[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(v, d, lane);
    auto result = lane[0];
    for (size_t k = 1; k < hn::Lanes(d); ++k) result *= lane[k];
    return result;
  }
};
struct Sum {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::Add(sum, v);
  }
};
struct SumSquare {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::MulAdd(v, v, sum);
  }
};
struct SumAbs {
  template <class V>
  HWY_INLINE V operator()(V sum, V v) const {
    return hn::Add(sum, hn::Abs(v));
  }
};

// A few elements one by one: rows beside each other are computed at the same time.
template <class W, class F>
HWY_INLINE W fold_few(const W* x, size_t count, W identity, F f) {
  const hn::CappedTag<W, 1> d;
  auto sum = hn::Set(d, identity);
  for (size_t i = 0; i < count; ++i) sum = f(sum, hn::LoadU(d, x + i));
  return hn::GetLane(sum);
}

template <class W, class F>
HWY_INLINE W fold_row(const W* x, size_t count, W identity, F f) {
  constexpr size_t kFew = 8;
  if (count <= kFew) return fold_few(x, count, identity, f);
  const hn::ScalableTag<W> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Set(d, identity), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    s0 = f(s0, hn::LoadU(d, x + i));
    s1 = f(s1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) s0 = f(s0, hn::LoadU(d, x + i));
  if (i < count) {
    const V tail =
        hn::IfThenElse(hn::FirstN(d, count - i), load_tail(d, x + i, count - i), hn::Set(d, identity));
    s1 = f(s1, tail);
  }
  return F::of_lanes(d, f(s0, s1));
}

template <class W>
HWY_INLINE void reduce_rows(ReduceKind kind, const W* x, int64_t rows, int64_t cols, W* y) {
  const hn::ScalableTag<W> d;
  using V = hn::Vec<decltype(d)>;
  const W identity = reduce_identity(kind);
  const auto n = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    switch (kind) {
      case ReduceKind::kSum:
        y[r] = static_cast<W>(row_sum(d, x, n, [](V v) HWY_ATTR { return v; }));
        break;
      case ReduceKind::kSumSquare:
        y[r] = static_cast<W>(row_sum(d, x, n, [](V v) HWY_ATTR { return hn::Mul(v, v); }));
        break;
      case ReduceKind::kSumAbs:
        y[r] = static_cast<W>(row_sum(d, x, n, [](V v) HWY_ATTR { return hn::Abs(v); }));
        break;
      case ReduceKind::kMax:
        y[r] = fold_row(x, n, identity, Max());
        break;
      case ReduceKind::kMin:
        y[r] = fold_row(x, n, identity, Min());
        break;
      case ReduceKind::kProduct:
        y[r] = fold_row(x, n, identity, Product());
        break;
    }
  }
}

// `f` takes an element into a group, `join` a group into the whole.
template <class W, class V, class F, class Join>
HWY_INLINE V fold_column(const W* x, size_t rows, size_t stride, V identity, size_t width, F f, Join join) {
  const hn::ScalableTag<W> d;
  constexpr size_t kGroup = 64;
  V total = identity;
  for (size_t start = 0; start < rows; start += kGroup) {
    const size_t end = start + kGroup < rows ? start + kGroup : rows;
    V group = identity;
    if (width == hn::Lanes(d)) {
      for (size_t r = start; r < end; ++r) group = f(group, hn::LoadU(d, x + r * stride));
    } else {
      for (size_t r = start; r < end; ++r) group = f(group, load_tail(d, x + r * stride, width));
    }
    total = join(total, group);
  }
  return total;
}

// Four columns of vectors side by side, so that a row is read a cache line or more at a time.
template <class W, class V, class F, class Join>
HWY_INLINE void fold_wide_column(const W* x, size_t rows, size_t stride, V identity, W* y, F f, Join join) {
  const hn::ScalableTag<W> d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kGroup = 64;
  V t0 = identity, t1 = identity, t2 = identity, t3 = identity;
  for (size_t start = 0; start < rows; start += kGroup) {
    const size_t end = start + kGroup < rows ? start + kGroup : rows;
    V g0 = identity, g1 = identity, g2 = identity, g3 = identity;
    for (size_t r = start; r < end; ++r) {
      const W* row = x + r * stride;
      g0 = f(g0, hn::LoadU(d, row));
      g1 = f(g1, hn::LoadU(d, row + lanes));
      g2 = f(g2, hn::LoadU(d, row + 2 * lanes));
      g3 = f(g3, hn::LoadU(d, row + 3 * lanes));
    }
    t0 = join(t0, g0);
    t1 = join(t1, g1);
    t2 = join(t2, g2);
    t3 = join(t3, g3);
  }
  hn::StoreU(t0, d, y);
  hn::StoreU(t1, d, y + lanes);
  hn::StoreU(t2, d, y + 2 * lanes);
  hn::StoreU(t3, d, y + 3 * lanes);
}

template <class W, class F, class Join>
HWY_INLINE void fold_columns(const W* x, int64_t rows, int64_t cols, int64_t stride, W* y, W first, F f,
                             Join join) {
  const hn::ScalableTag<W> d;
  using V = hn::Vec<decltype(d)>;
  const V identity = hn::Set(d, first);
  const size_t lanes = hn::Lanes(d);
  const auto count = static_cast<size_t>(cols);
  const auto height = static_cast<size_t>(rows);
  const auto step = static_cast<size_t>(stride);
  size_t c = 0;
  for (; c + 4 * lanes <= count; c += 4 * lanes)
    fold_wide_column(x + c, height, step, identity, y + c, f, join);
  for (; c < count; c += lanes) {
    const size_t width = count - c < lanes ? count - c : lanes;
    const V sum = fold_column(x + c, height, step, identity, width, f, join);
    store_tail(d, sum, y + c, width);
  }
}

template <class W>
HWY_INLINE void reduce_columns(ReduceKind kind, const W* x, int64_t rows, int64_t cols, int64_t stride,
                               W* y) {
  const W first = reduce_identity(kind);
  switch (kind) {
    case ReduceKind::kSum:
      return fold_columns(x, rows, cols, stride, y, first, Sum(), Sum());
    case ReduceKind::kSumSquare:
      return fold_columns(x, rows, cols, stride, y, first, SumSquare(), Sum());
    case ReduceKind::kSumAbs:
      return fold_columns(x, rows, cols, stride, y, first, SumAbs(), Sum());
    case ReduceKind::kMax:
      return fold_columns(x, rows, cols, stride, y, first, Max(), Max());
    case ReduceKind::kMin:
      return fold_columns(x, rows, cols, stride, y, first, Min(), Min());
    case ReduceKind::kProduct:
      return fold_columns(x, rows, cols, stride, y, first, Product(), Product());
  }
}

}  // namespace

HWY_NOINLINE void rows_of_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, float* y) {
  reduce_rows(kind, x, rows, cols, y);
}
HWY_NOINLINE void columns_of_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, int64_t stride,
                                 float* y) {
  reduce_columns(kind, x, rows, cols, stride, y);
}
HWY_NOINLINE void rows_of_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, double* y) {
  reduce_rows(kind, x, rows, cols, y);
}
HWY_NOINLINE void columns_of_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, int64_t stride,
                                 double* y) {
  reduce_columns(kind, x, rows, cols, stride, y);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(rows_of_f32);
HWY_EXPORT(rows_of_f64);
HWY_EXPORT(columns_of_f32);
HWY_EXPORT(columns_of_f64);

float reduce_identity(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kMax:
      return -std::numeric_limits<float>::infinity();
    case ReduceKind::kMin:
      return std::numeric_limits<float>::infinity();
    case ReduceKind::kProduct:
      return 1;
    default:
      return 0;
  }
}

void reduce_rows_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, float* y) {
  HWY_DYNAMIC_DISPATCH(rows_of_f32)(kind, x, rows, cols, y);
}

void reduce_columns_f32(ReduceKind kind, const float* x, int64_t rows, int64_t cols, int64_t stride,
                        float* y) {
  HWY_DYNAMIC_DISPATCH(columns_of_f32)(kind, x, rows, cols, stride, y);
}

void reduce_rows_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, double* y) {
  HWY_DYNAMIC_DISPATCH(rows_of_f64)(kind, x, rows, cols, y);
}

void reduce_columns_f64(ReduceKind kind, const double* x, int64_t rows, int64_t cols, int64_t stride,
                        double* y) {
  HWY_DYNAMIC_DISPATCH(columns_of_f64)(kind, x, rows, cols, stride, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
