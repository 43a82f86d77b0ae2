#include "kernels/batch_norm.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/batch_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Calls f(channel, lanes) for each vector of channels.
template <class W, class F>
HWY_INLINE void for_each_vector(int64_t channels, const F& f) {
  int64_t c = 0;
  for (; c + kLanesOf<W> <= channels; c += kLanesOf<W>) f(c, AllLanes<W>());
  if (c < channels) f(c, Lanes<W>(channels - c));
}

template <class T, bool kAdds, bool kRelu>
HWY_INLINE void normalized(const NormalizedRows<T>& job) {
  using W = LaneOf<T>;
  const TagOf<T> d;
  for (int64_t row = 0; row < job.rows; ++row) {
    const int64_t at = row * job.channels;
    for_each_vector<W>(job.channels, [&](int64_t c, const auto& lanes) HWY_ATTR {
      VecOf<T> y = hn::MulAdd(lanes.load(job.a + c), lanes.load(job.x + at + c), lanes.load(job.b + c));
      if constexpr (kAdds) y = hn::Add(y, lanes.load(job.z + at + c));
      if constexpr (kRelu) y = hn::IfThenZeroElse(hn::Lt(y, hn::Zero(d)), y);
      lanes.store(y, job.y + at + c);
    });
  }
}

// dy, or zero where the mask is not.
template <class T, bool kMasked, class Some>
HWY_INLINE VecOf<T> masked_dy(const NormGradientRows<T>& job, VecOf<T> x, int64_t at, VecOf<T> a, VecOf<T> b,
                              const Some& lanes) {
  const VecOf<T> dy = lanes.load(job.dy + at);
  if constexpr (!kMasked) return dy;
  return hn::IfThenElseZero(hn::Gt(hn::MulAdd(a, x, b), hn::Zero(TagOf<T>())), dy);
}

// kVectors neighbouring vectors of channels, whose sums stay in registers, over some rows.
template <class T, bool kMasked, int kVectors, class Some>
HWY_INLINE void strip_sums(const NormGradientRows<T>& job, int64_t first, int64_t last, int64_t c,
                           LaneOf<T>* to_dy, LaneOf<T>* to_product, const Some& lanes) {
  using W = LaneOf<T>;
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<W>;
  VecOf<T> a[kVectors], b[kVectors], mean[kVectors], sum[kVectors], product[kVectors];
  HWY_UNROLL(4)
  for (int v = 0; v < kVectors; ++v) {
    a[v] = b[v] = sum[v] = product[v] = hn::Zero(d);
    mean[v] = lanes.load(job.mean + c + v * kLanes);
    if constexpr (kMasked) {
      a[v] = lanes.load(job.a + c + v * kLanes);
      b[v] = lanes.load(job.b + c + v * kLanes);
    }
  }
  for (int64_t row = first; row < last; ++row) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = row * job.channels + c + v * kLanes;
      const VecOf<T> x = lanes.load(job.x + at);
      const VecOf<T> dy = masked_dy<T, kMasked>(job, x, at, a[v], b[v], lanes);
      sum[v] = hn::Add(sum[v], dy);
      product[v] = hn::MulAdd(dy, hn::Sub(x, mean[v]), product[v]);
    }
  }
  HWY_UNROLL(4)
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = c + v * kLanes;
    lanes.store(hn::Add(lanes.load(to_dy + at), sum[v]), to_dy + at);
    lanes.store(hn::Add(lanes.load(to_product + at), product[v]), to_product + at);
  }
}

template <class T, bool kMasked>
HWY_INLINE void sums_of_rows(const NormGradientRows<T>& job, LaneOf<T>* dy, LaneOf<T>* product) {
  using W = LaneOf<T>;
  constexpr int64_t kRows = 32, kLanes = kLanesOf<W>;  // rows of all channels stay near
  std::fill_n(dy, job.channels, W{0});
  std::fill_n(product, job.channels, W{0});
  for (int64_t first = 0; first < job.rows; first += kRows) {
    const int64_t last = std::min(job.rows, first + kRows);
    int64_t c = 0;
    for (; c + 4 * kLanes <= job.channels; c += 4 * kLanes)
      strip_sums<T, kMasked, 4>(job, first, last, c, dy, product, AllLanes<W>());
    for (; c + kLanes <= job.channels; c += kLanes)
      strip_sums<T, kMasked, 1>(job, first, last, c, dy, product, AllLanes<W>());
    if (c < job.channels)
      strip_sums<T, kMasked, 1>(job, first, last, c, dy, product, Lanes<W>(job.channels - c));
  }
}

template <class T, bool kMasked>
HWY_INLINE void gradient_of_rows(const NormGradientRows<T>& job, const LaneOf<T>* slope,
                                 const LaneOf<T>* tilt, const LaneOf<T>* shift, T* dx) {
  using W = LaneOf<T>;
  const TagOf<T> d;
  for (int64_t row = 0; row < job.rows; ++row) {
    for_each_vector<W>(job.channels, [&](int64_t c, const auto& lanes) HWY_ATTR {
      const int64_t at = row * job.channels + c;
      VecOf<T> a = hn::Zero(d), b = hn::Zero(d);
      if constexpr (kMasked) a = lanes.load(job.a + c), b = lanes.load(job.b + c);
      const VecOf<T> x = lanes.load(job.x + at);
      const VecOf<T> dy = masked_dy<T, kMasked>(job, x, at, a, b, lanes);
      const VecOf<T> rest =
          hn::MulAdd(lanes.load(tilt + c), hn::Sub(x, lanes.load(job.mean + c)), lanes.load(shift + c));
      lanes.store(hn::MulAdd(lanes.load(slope + c), dy, rest), dx + at);
    });
  }
}

}  // namespace

#define PLIMSOLL_BATCH_NORM(T, name)                                                                       \
  HWY_NOINLINE void name##_normalize(const NormalizedRows<T>& job) {                                       \
    if (job.z != nullptr)                                                                                  \
      return job.relu ? normalized<T, true, true>(job) : normalized<T, true, false>(job);                  \
    return job.relu ? normalized<T, false, true>(job) : normalized<T, false, false>(job);                  \
  }                                                                                                        \
  HWY_NOINLINE void name##_sums(const NormGradientRows<T>& job, LaneOf<T>* dy, LaneOf<T>* product) {       \
    job.a != nullptr ? sums_of_rows<T, true>(job, dy, product) : sums_of_rows<T, false>(job, dy, product); \
  }                                                                                                        \
  HWY_NOINLINE void name##_gradient(const NormGradientRows<T>& job, const LaneOf<T>* slope,                \
                                    const LaneOf<T>* tilt, const LaneOf<T>* shift, T* dx) {                \
    job.a != nullptr ? gradient_of_rows<T, true>(job, slope, tilt, shift, dx)                              \
                     : gradient_of_rows<T, false>(job, slope, tilt, shift, dx);                            \
  }
PLIMSOLL_BATCH_NORM(float, f32_norm)
PLIMSOLL_BATCH_NORM(double, f64_norm)
PLIMSOLL_BATCH_NORM(Float16, f16_norm)
PLIMSOLL_BATCH_NORM(BFloat16, bf16_norm)
#undef PLIMSOLL_BATCH_NORM

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_BATCH_NORM(T, name)                                                                        \
  HWY_EXPORT(name##_normalize);                                                                             \
  HWY_EXPORT(name##_sums);                                                                                  \
  HWY_EXPORT(name##_gradient);                                                                              \
  template <>                                                                                               \
  void normalize_rows<T>(const NormalizedRows<T>& job) {                                                    \
    HWY_DYNAMIC_DISPATCH(name##_normalize)(job);                                                            \
  }                                                                                                         \
  template <>                                                                                               \
  void norm_gradient_sums<T>(const NormGradientRows<T>& job, LaneOf<T>* dy, LaneOf<T>* product) {           \
    HWY_DYNAMIC_DISPATCH(name##_sums)(job, dy, product);                                                    \
  }                                                                                                         \
  template <>                                                                                               \
  void norm_gradient_rows<T>(const NormGradientRows<T>& job, const LaneOf<T>* slope, const LaneOf<T>* tilt, \
                             const LaneOf<T>* shift, T* dx) {                                               \
    HWY_DYNAMIC_DISPATCH(name##_gradient)(job, slope, tilt, shift, dx);                                     \
  }
PLIMSOLL_BATCH_NORM(float, f32_norm)
PLIMSOLL_BATCH_NORM(double, f64_norm)
PLIMSOLL_BATCH_NORM(Float16, f16_norm)
PLIMSOLL_BATCH_NORM(BFloat16, bf16_norm)
#undef PLIMSOLL_BATCH_NORM

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
