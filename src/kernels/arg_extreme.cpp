#include "kernels/arg_extreme.h"

#include <cmath>

#include "kernels/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arg_extreme.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Elements that equal `value`; a NaN equals a NaN.
HWY_INLINE hn::Mask<D> same(V v, V value) {
  return hn::Or(hn::Eq(v, value), hn::And(hn::IsNaN(v), hn::IsNaN(value)));
}

HWY_INLINE bool same(float x, float value) {
  return x == value || (x != x && value != value);
}

HWY_NOINLINE int64_t find_first(const float* x, int64_t count, float value) {
  const D d;
  const V wanted = hn::Set(d, value);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  while (i + lanes <= count && hn::AllFalse(d, same(hn::LoadU(d, x + i), wanted))) i += lanes;
  while (i + 1 < count && !same(x[i], value)) ++i;
  return i;
}

HWY_NOINLINE int64_t find_last(const float* x, int64_t count, float value) {
  const D d;
  const V wanted = hn::Set(d, value);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t end = count;
  while (end >= lanes && hn::AllFalse(d, same(hn::LoadU(d, x + end - lanes), wanted))) end -= lanes;
  while (end > 1 && !same(x[end - 1], value)) --end;
  return end - 1;
}

// True where v takes the place of `best`.
template <bool kLargest, bool kLast>
HWY_INLINE hn::Mask<D> beats(V v, V best) {
  const auto nan = hn::IsNaN(v);
  const auto further = kLargest ? hn::Gt(v, best) : hn::Lt(v, best);
  const auto wins = kLast ? hn::Or(hn::Eq(v, best), further) : further;
  return kLast ? hn::Or(nan, wins) : hn::Or(wins, hn::AndNot(hn::IsNaN(best), nan));
}

template <bool kLargest, bool kLast>
HWY_INLINE void arg_strip(const float* x, int64_t rows, int64_t stride, size_t width, int64_t* y) {
  const D d;
  const hn::RebindToSigned<D> di;
  constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN int32_t lanes[kMostLanes];
  const bool whole = width == hn::Lanes(d);
  V best = whole ? hn::LoadU(d, x) : load_tail(d, x, width);
  auto place = hn::Zero(di);
  for (int64_t r = 1; r < rows; ++r) {
    const V v = whole ? hn::LoadU(d, x + r * stride) : load_tail(d, x + r * stride, width);
    const auto wins = beats<kLargest, kLast>(v, best);
    best = hn::IfThenElse(wins, v, best);
    place = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<int32_t>(r)), place);
  }
  hn::Store(place, di, lanes);
  for (size_t i = 0; i < width; ++i) y[i] = lanes[i];
}

template <bool kLargest, bool kLast>
HWY_INLINE void arg_columns_of(const float* x, int64_t rows, int64_t cols, int64_t stride, int64_t* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t c = 0; c < cols; c += lanes)
    arg_strip<kLargest, kLast>(x + c, rows, stride, static_cast<size_t>(cols - c < lanes ? cols - c : lanes),
                               y + c);
}

HWY_NOINLINE void arg_columns(const ArgExtreme& f, const float* x, int64_t rows, int64_t cols, int64_t stride,
                              int64_t* y) {
  if (f.largest)
    return f.last ? arg_columns_of<true, true>(x, rows, cols, stride, y)
                  : arg_columns_of<true, false>(x, rows, cols, stride, y);
  return f.last ? arg_columns_of<false, true>(x, rows, cols, stride, y)
                : arg_columns_of<false, false>(x, rows, cols, stride, y);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(find_first);
HWY_EXPORT(find_last);
HWY_EXPORT(arg_columns);

// Two passes: what the extreme is, then where. The second ends where it finds it.
void arg_rows_f32(const ArgExtreme& f, const float* x, int64_t rows, int64_t cols, int64_t* y) {
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    float extreme;
    reduce_rows_f32(f.largest ? ReduceKind::kMax : ReduceKind::kMin, x, 1, cols, &extreme);
    y[r] = f.last ? HWY_DYNAMIC_DISPATCH(find_last)(x, cols, extreme)
                  : HWY_DYNAMIC_DISPATCH(find_first)(x, cols, extreme);
  }
}

void arg_columns_f32(const ArgExtreme& f, const float* x, int64_t rows, int64_t cols, int64_t stride,
                     int64_t* y) {
  HWY_DYNAMIC_DISPATCH(arg_columns)(f, x, rows, cols, stride, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
