#include "kernels/norm_gradient.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// The sum of f(i, lanes) over the vectors of a row; f gives zeros where the row has ended.
template <class T, class F>
HWY_INLINE LaneOf<T> sum_of(int64_t cols, F f) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  VecOf<T> s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= cols; i += 2 * kLanes) {
    s0 = hn::Add(s0, f(i, kLanes));
    s1 = hn::Add(s1, f(i + kLanes, kLanes));
  }
  for (; i < cols; i += kLanes) s0 = hn::Add(s0, f(i, cols - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

template <class T>
struct RowMoments {
  LaneOf<T> mean, inverse;
};

template <class T>
HWY_INLINE RowMoments<T> moments_of(const RowNormGradient<T>& job, const T* x) {
  const TagOf<T> d;
  using W = LaneOf<T>;
  const W n = static_cast<W>(job.cols);
  W mean = 0;
  if (job.centered)
    mean =
        sum_of<T>(job.cols, [=](int64_t i, int64_t lanes) HWY_ATTR { return load_lanes(x + i, lanes); }) / n;
  const VecOf<T> center = hn::Set(d, mean);
  const W squares = sum_of<T>(job.cols, [=](int64_t i, int64_t lanes) HWY_ATTR {
    VecOf<T> distance = hn::Sub(load_lanes(x + i, lanes), center);
    if (lanes < kLanesOf<T>)
      distance = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(lanes)), distance);
    return hn::Mul(distance, distance);
  });
  return {mean, W{1} / std::sqrt(squares / n + static_cast<W>(job.epsilon))};
}

template <class T>
HWY_INLINE VecOf<T> scaled(const RowNormGradient<T>& job, VecOf<T> dy, int64_t i, int64_t lanes) {
  return job.scale == nullptr ? dy : hn::Mul(dy, load_lanes(job.scale + i, lanes));
}

template <class T>
HWY_INLINE void add_parameters(const RowNormGradient<T>& job, const T* x, const T* dy, RowMoments<T> m) {
  const TagOf<T> d;
  const VecOf<T> mean = hn::Set(d, m.mean), inverse = hn::Set(d, m.inverse);
  for (int64_t i = 0; i < job.cols; i += kLanesOf<T>) {
    const int64_t lanes = job.cols - i;
    const VecOf<T> g = load_lanes(dy + i, lanes);
    if (job.dbias != nullptr) store_lanes(hn::Add(g, load_lanes(job.dbias + i, lanes)), job.dbias + i, lanes);
    if (job.dscale == nullptr) continue;
    const VecOf<T> normal = hn::Mul(hn::Sub(load_lanes(x + i, lanes), mean), inverse);
    store_lanes(hn::MulAdd(g, normal, load_lanes(job.dscale + i, lanes)), job.dscale + i, lanes);
  }
}

// dx = inverse * (g - mean(g) - normal * mean(g * normal)), where g = dy * scale and normal = (x - mean) *
// inverse; the first mean only if centered.
template <class T>
HWY_INLINE void write_row(const RowNormGradient<T>& job, const T* x, const T* dy, T* dx, RowMoments<T> m) {
  const TagOf<T> d;
  using W = LaneOf<T>;
  const W n = static_cast<W>(job.cols);
  const VecOf<T> mean = hn::Set(d, m.mean), inverse = hn::Set(d, m.inverse);
  W first = 0;
  if (job.centered)
    first = sum_of<T>(job.cols, [&](int64_t i, int64_t lanes)
                                    HWY_ATTR { return scaled(job, load_lanes(dy + i, lanes), i, lanes); }) /
            n;
  const W second = sum_of<T>(job.cols,
                             [&](int64_t i, int64_t lanes) HWY_ATTR {
                               const VecOf<T> g = scaled(job, load_lanes(dy + i, lanes), i, lanes);
                               return hn::Mul(g, hn::Sub(load_lanes(x + i, lanes), mean));
                             }) *
                   m.inverse / n;
  const VecOf<T> shift = hn::Set(d, first), slope = hn::Set(d, second * m.inverse);
  for (int64_t i = 0; i < job.cols; i += kLanesOf<T>) {
    const int64_t lanes = job.cols - i;
    const VecOf<T> g = scaled(job, load_lanes(dy + i, lanes), i, lanes);
    const VecOf<T> rest = hn::NegMulAdd(hn::Sub(load_lanes(x + i, lanes), mean), slope, hn::Sub(g, shift));
    store_lanes(hn::Mul(rest, inverse), dx + i, lanes);
  }
}

}  // namespace

template <class T>
HWY_NOINLINE void rows_of(const RowNormGradient<T>& job) {
  for (int64_t row = 0; row < job.rows; ++row) {
    const T *x = job.x + row * job.cols, *dy = job.dy + row * job.cols;
    const RowMoments<T> m = moments_of<T>(job, x);
    if (job.dscale != nullptr || job.dbias != nullptr) add_parameters<T>(job, x, dy, m);
    if (job.dx != nullptr) write_row<T>(job, x, dy, job.dx + row * job.cols, m);
  }
}

void rows_f32(const RowNormGradient<float>& job) {
  rows_of<float>(job);
}
void rows_f64(const RowNormGradient<double>& job) {
  rows_of<double>(job);
}
void rows_f16(const RowNormGradient<Float16>& job) {
  rows_of<Float16>(job);
}
void rows_bf16(const RowNormGradient<BFloat16>& job) {
  rows_of<BFloat16>(job);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(rows_f32);
HWY_EXPORT(rows_f64);
HWY_EXPORT(rows_f16);
HWY_EXPORT(rows_bf16);

template <>
void row_norm_gradient(const RowNormGradient<float>& job) {
  HWY_DYNAMIC_DISPATCH(rows_f32)(job);
}
template <>
void row_norm_gradient(const RowNormGradient<double>& job) {
  HWY_DYNAMIC_DISPATCH(rows_f64)(job);
}
template <>
void row_norm_gradient(const RowNormGradient<Float16>& job) {
  HWY_DYNAMIC_DISPATCH(rows_f16)(job);
}
template <>
void row_norm_gradient(const RowNormGradient<BFloat16>& job) {
  HWY_DYNAMIC_DISPATCH(rows_bf16)(job);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
