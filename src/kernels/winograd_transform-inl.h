// The transforms of F(m x m, 3 x 3) on vectors of channels, once per target. A transform of a square is that
// of a line, along columns, then rows. Points are 0, infinity, and 1 and -1 for m = 2; for m = 4 plus and
// minus 3/4 and 3/2, whose powers are exact and which round off a quarter of what the usual 1 and 2 do.
#if defined(PLIMSOLL_KERNELS_WINOGRAD_TRANSFORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#undef PLIMSOLL_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#else
#define PLIMSOLL_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The points of m = 4 beside 0 and infinity, and their squares.
constexpr float kNear = 0.75f, kFar = 1.5f, kNear2 = kNear * kNear, kFar2 = kFar * kFar;

template <int kPoints>
struct VectorLine {
  FloatVec at[kPoints];
};

HWY_INLINE FloatVec times(float factor, FloatVec x) {
  return hn::Mul(hn::Set(FloatTag(), factor), x);
}
HWY_INLINE FloatVec plus_times(FloatVec sum, float factor, FloatVec x) {
  return hn::MulAdd(hn::Set(FloatTag(), factor), x, sum);
}

template <int kM>
HWY_INLINE VectorLine<kM + 2> input_line(const VectorLine<kM + 2>& in) {
  const auto& d = in.at;
  if constexpr (kM == 2) {
    return {{hn::Sub(d[0], d[2]), hn::Add(d[1], d[2]), hn::Sub(d[2], d[1]), hn::Sub(d[1], d[3])}};
  } else {
    const FloatVec near_even = plus_times(d[4], -kFar2, d[2]), near_odd = plus_times(d[3], -kFar2, d[1]);
    const FloatVec far_even = plus_times(d[4], -kNear2, d[2]), far_odd = plus_times(d[3], -kNear2, d[1]);
    return {{plus_times(plus_times(d[4], -(kNear2 + kFar2), d[2]), kNear2 * kFar2, d[0]),
             plus_times(near_even, kNear, near_odd), plus_times(near_even, -kNear, near_odd),
             plus_times(far_even, kFar, far_odd), plus_times(far_even, -kFar, far_odd),
             plus_times(plus_times(d[5], -(kNear2 + kFar2), d[3]), kNear2 * kFar2, d[1])}};
  }
}

template <int kM>
HWY_INLINE VectorLine<kM> output_line(const VectorLine<kM + 2>& in) {
  const auto& m = in.at;
  if constexpr (kM == 2) {
    return {{hn::Add(hn::Add(m[0], m[1]), m[2]), hn::Sub(hn::Sub(m[1], m[2]), m[3])}};
  } else {
    const FloatVec near_sum = hn::Add(m[1], m[2]), near = hn::Sub(m[1], m[2]);
    const FloatVec far_sum = hn::Add(m[3], m[4]), far = hn::Sub(m[3], m[4]);
    return {{hn::Add(hn::Add(m[0], near_sum), far_sum), plus_times(times(kNear, near), kFar, far),
             plus_times(times(kNear2, near_sum), kFar2, far_sum),
             plus_times(plus_times(m[5], kNear2 * kNear, near), kFar2 * kFar, far)}};
  }
}

template <int kM>
HWY_INLINE VectorLine<kM + 2> weight_line(const VectorLine<3>& in) {
  const auto& g = in.at;
  if constexpr (kM == 2) {
    const FloatVec ends = hn::Add(g[0], g[2]);
    return {{g[0], times(0.5f, hn::Add(ends, g[1])), times(0.5f, hn::Sub(ends, g[1])), g[2]}};
  } else {
    constexpr double kNearScale = 1 / (2.0 * kNear2 * (kNear2 - kFar2));
    constexpr double kFarScale = 1 / (2.0 * kFar2 * (kFar2 - kNear2));
    const auto even = [&](double scale, float square) HWY_ATTR {
      return plus_times(times(static_cast<float>(scale), g[0]), static_cast<float>(scale * square), g[2]);
    };
    const FloatVec near_even = even(kNearScale, kNear2), far_even = even(kFarScale, kFar2);
    constexpr auto kNearOdd = static_cast<float>(kNearScale * kNear);
    constexpr auto kFarOdd = static_cast<float>(kFarScale * kFar);
    return {{times(1 / (kNear2 * kFar2), g[0]), plus_times(near_even, kNearOdd, g[1]),
             plus_times(near_even, -kNearOdd, g[1]), plus_times(far_even, kFarOdd, g[1]),
             plus_times(far_even, -kFarOdd, g[1]), g[2]}};
  }
}

// load(row, column) gives a square of kFrom x kFrom, store(row, column, vector) takes one of kTo x kTo.
template <int kFrom, int kTo, class Line, class Load, class Store>
HWY_INLINE void transform_square(const Line& line, const Load& load, const Store& store) {
  VectorLine<kFrom> rows[kTo];
  HWY_UNROLL(6)
  for (int j = 0; j < kFrom; ++j) {
    VectorLine<kFrom> column;
    HWY_UNROLL(6)
    for (int i = 0; i < kFrom; ++i) column.at[i] = load(i, j);
    const VectorLine<kTo> made = line(column);
    HWY_UNROLL(6)
    for (int i = 0; i < kTo; ++i) rows[i].at[j] = made.at[i];
  }
  HWY_UNROLL(6)
  for (int i = 0; i < kTo; ++i) {
    const VectorLine<kTo> made = line(rows[i]);
    HWY_UNROLL(6)
    for (int j = 0; j < kTo; ++j) store(i, j, made.at[j]);
  }
}

template <int kM, class Load, class Store>
HWY_INLINE void transform_input(const Load& load, const Store& store) {
  const auto line = [](const VectorLine<kM + 2>& in) HWY_ATTR { return input_line<kM>(in); };
  transform_square<kM + 2, kM + 2>(line, load, store);
}
template <int kM, class Load, class Store>
HWY_INLINE void transform_output(const Load& load, const Store& store) {
  const auto line = [](const VectorLine<kM + 2>& in) HWY_ATTR { return output_line<kM>(in); };
  transform_square<kM + 2, kM>(line, load, store);
}
template <int kM, class Load, class Store>
HWY_INLINE void transform_weights(const Load& load, const Store& store) {
  const auto line = [](const VectorLine<3>& in) HWY_ATTR { return weight_line<kM>(in); };
  transform_square<3, kM + 2>(line, load, store);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
