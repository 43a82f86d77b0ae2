#include "kernels/arg_extreme.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arg_extreme.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// True where v takes the place of `best`.
template <bool kLargest, bool kLast, class V>
HWY_INLINE auto beats(V v, V best) {
  const auto nan = hn::IsNaN(v);
  const auto further = kLargest ? hn::Gt(v, best) : hn::Lt(v, best);
  const auto wins = kLast ? hn::Or(hn::Eq(v, best), further) : further;
  return kLast ? hn::Or(nan, wins) : hn::Or(wins, hn::AndNot(hn::IsNaN(best), nan));
}

// Elements that equal `value`; a NaN equals a NaN.
template <class V>
HWY_INLINE auto same(V v, V value) {
  return hn::Or(hn::Eq(v, value), hn::And(hn::IsNaN(v), hn::IsNaN(value)));
}
template <class W>
HWY_INLINE bool same_number(W x, W value) {
  return x == value || (x != x && value != value);
}

template <bool kLargest, class W>
HWY_INLINE W further(W x, W best) {
  return x != x || (kLargest ? x > best : x < best) ? x : best;
}

template <bool kLargest, class T>
HWY_INLINE LaneOf<T> extreme_of(const T* x, int64_t count) {
  const TagOf<T> d;
  LaneOf<T> best = static_cast<LaneOf<T>>(x[0]);
  int64_t i = 1;
  if (count >= 2 * kLanesOf<T>) {
    VecOf<T> first = load_all(d, x), second = load_all(d, x + kLanesOf<T>);
    for (i = 2 * kLanesOf<T>; i + 2 * kLanesOf<T> <= count; i += 2 * kLanesOf<T>) {
      const VecOf<T> v = load_all(d, x + i), w = load_all(d, x + i + kLanesOf<T>);
      first = hn::IfThenElse(beats<kLargest, false>(v, first), v, first);
      second = hn::IfThenElse(beats<kLargest, false>(w, second), w, second);
    }
    HWY_ALIGN LaneOf<T> lanes[2 * hn::MaxLanes(d)];
    hn::Store(first, d, lanes);
    hn::Store(second, d, lanes + kLanesOf<T>);
    for (LaneOf<T> lane : lanes) best = further<kLargest>(lane, best);
  }
  for (; i < count; ++i) best = further<kLargest>(static_cast<LaneOf<T>>(x[i]), best);
  return best;
}

template <class T>
HWY_INLINE int64_t find_first(const T* x, int64_t count, LaneOf<T> value) {
  const TagOf<T> d;
  const VecOf<T> wanted = hn::Set(d, value);
  int64_t i = 0;
  while (i + kLanesOf<T> <= count && hn::AllFalse(d, same(load_all(d, x + i), wanted))) i += kLanesOf<T>;
  while (i + 1 < count && !same_number(static_cast<LaneOf<T>>(x[i]), value)) ++i;
  return i;
}

template <class T>
HWY_INLINE int64_t find_last(const T* x, int64_t count, LaneOf<T> value) {
  const TagOf<T> d;
  const VecOf<T> wanted = hn::Set(d, value);
  int64_t end = count;
  while (end >= kLanesOf<T> && hn::AllFalse(d, same(load_all(d, x + end - kLanesOf<T>), wanted)))
    end -= kLanesOf<T>;
  while (end > 1 && !same_number(static_cast<LaneOf<T>>(x[end - 1]), value)) --end;
  return end - 1;
}

// Two passes: what the extreme is, then where. The second ends where it finds it.
template <class T>
HWY_INLINE void rows_of(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t* y) {
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    const LaneOf<T> extreme = f.largest ? extreme_of<true>(x, cols) : extreme_of<false>(x, cols);
    y[r] = f.last ? find_last(x, cols, extreme) : find_first(x, cols, extreme);
  }
}

template <bool kLargest, bool kLast, class T>
HWY_INLINE void arg_strip(const T* x, int64_t rows, int64_t stride, int64_t width, int64_t* y) {
  const TagOf<T> d;
  const hn::RebindToSigned<TagOf<T>> di;
  using Place = hn::TFromD<decltype(di)>;
  VecOf<T> best = load_lanes(x, width);
  auto place = hn::Zero(di);
  for (int64_t r = 1; r < rows; ++r) {
    const VecOf<T> v = load_lanes(x + r * stride, width);
    const auto wins = beats<kLargest, kLast>(v, best);
    best = hn::IfThenElse(wins, v, best);
    place = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<Place>(r)), place);
  }
  HWY_ALIGN Place lanes[hn::MaxLanes(d)];
  hn::Store(place, di, lanes);
  for (int64_t i = 0; i < width; ++i) y[i] = lanes[i];
}

template <bool kLargest, bool kLast, class T>
HWY_INLINE void strips_of(const T* x, int64_t rows, int64_t cols, int64_t stride, int64_t* y) {
  for (int64_t c = 0; c < cols; c += kLanesOf<T>)
    arg_strip<kLargest, kLast>(x + c, rows, stride, std::min(cols - c, kLanesOf<T>), y + c);
}

template <class T>
HWY_INLINE void columns_of(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t stride,
                           int64_t* y) {
  if (f.largest)
    return f.last ? strips_of<true, true>(x, rows, cols, stride, y)
                  : strips_of<true, false>(x, rows, cols, stride, y);
  return f.last ? strips_of<false, true>(x, rows, cols, stride, y)
                : strips_of<false, false>(x, rows, cols, stride, y);
}

}  // namespace

#define PLIMSOLL_ARG_EXTREME(T, suffix)                                                              \
  void rows_##suffix(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t* y) {      \
    rows_of(f, x, rows, cols, y);                                                                    \
  }                                                                                                  \
  void columns_##suffix(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t stride, \
                        int64_t* y) {                                                                \
    columns_of(f, x, rows, cols, stride, y);                                                         \
  }
PLIMSOLL_ARG_EXTREME(float, f32)
PLIMSOLL_ARG_EXTREME(double, f64)
PLIMSOLL_ARG_EXTREME(Float16, f16)
PLIMSOLL_ARG_EXTREME(BFloat16, bf16)
#undef PLIMSOLL_ARG_EXTREME

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_ARG_EXTREME(T, suffix)                                                            \
  HWY_EXPORT(rows_##suffix);                                                                       \
  HWY_EXPORT(columns_##suffix);                                                                    \
  template <>                                                                                      \
  void arg_rows<T>(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t* y) {      \
    HWY_DYNAMIC_DISPATCH(rows_##suffix)(f, x, rows, cols, y);                                      \
  }                                                                                                \
  template <>                                                                                      \
  void arg_columns<T>(const ArgExtreme& f, const T* x, int64_t rows, int64_t cols, int64_t stride, \
                      int64_t* y) {                                                                \
    HWY_DYNAMIC_DISPATCH(columns_##suffix)(f, x, rows, cols, stride, y);                           \
  }
PLIMSOLL_ARG_EXTREME(float, f32)
PLIMSOLL_ARG_EXTREME(double, f64)
PLIMSOLL_ARG_EXTREME(Float16, f16)
PLIMSOLL_ARG_EXTREME(BFloat16, bf16)
#undef PLIMSOLL_ARG_EXTREME

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
