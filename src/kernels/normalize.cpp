#include "kernels/normalize.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

namespace {

template <class W>
using TagFor = hn::ScalableTag<W>;
template <class W>
using VecFor = hn::Vec<TagFor<W>>;

template <class W>
HWY_INLINE void row_moments(const W* x, size_t count, W& mean, W& variance) {
  const TagFor<W> d;
  using V = VecFor<W>;
  const double n = static_cast<double>(count);
  mean = static_cast<W>(row_sum(d, x, count, [](V v) HWY_ATTR { return v; }) / n);
  const V center = hn::Set(d, mean);
  const auto squared_distance = [=](V v) HWY_ATTR {
    const V distance = hn::Sub(v, center);
    return hn::Mul(distance, distance);
  };
  variance = static_cast<W>(row_sum(d, x, count, squared_distance) / n);
}

// Calls step(i, load, store) for every vector of a row, the narrower last one included.
template <class W, class F>
HWY_INLINE void for_each_vector(size_t count, F f) {
  using D = TagFor<W>;
  using V = VecFor<W>;
  const size_t lanes = hn::Lanes(D());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    f(
        i, [](const W* from) HWY_ATTR { return hn::LoadU(D(), from); },
        [](V v, W* to) HWY_ATTR { hn::StoreU(v, D(), to); });
  const size_t rest = count - i;
  if (rest > 0)
    f(
        i, [rest](const W* from) HWY_ATTR { return load_tail(D(), from, rest); },
        [rest](V v, W* to) HWY_ATTR { store_tail(D(), v, to, rest); });
}

template <class W>
HWY_INLINE void layer_norm(const W* x, const W* scale, const W* bias, W* y, int64_t rows, int64_t cols,
                           float epsilon, float* mean, float* inverse_deviation) {
  const TagFor<W> d;
  using V = VecFor<W>;
  const auto n = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    W center, variance;
    row_moments(x, n, center, variance);
    const W inverse = W{1} / std::sqrt(variance + epsilon);
    if (mean != nullptr) mean[r] = static_cast<float>(center);
    if (inverse_deviation != nullptr) inverse_deviation[r] = static_cast<float>(inverse);
    const V vcenter = hn::Set(d, center), vinverse = hn::Set(d, inverse);
    const auto normal = [=](V v) HWY_ATTR { return hn::Mul(hn::Sub(v, vcenter), vinverse); };
    if (bias != nullptr) {
      for_each_vector<W>(n, [=](size_t i, auto load, auto store) HWY_ATTR {
        store(hn::MulAdd(normal(load(x + i)), load(scale + i), load(bias + i)), y + i);
      });
    } else {
      for_each_vector<W>(n, [=](size_t i, auto load, auto store)
                                HWY_ATTR { store(hn::Mul(normal(load(x + i)), load(scale + i)), y + i); });
    }
  }
}

template <class W>
HWY_INLINE void affine(const W* x, W* y, int64_t count, W a, W b) {
  const VecFor<W> va = hn::Set(TagFor<W>(), a), vb = hn::Set(TagFor<W>(), b);
  for_each_vector<W>(static_cast<size_t>(count), [=](size_t i, auto load, auto store) HWY_ATTR {
    store(hn::MulAdd(load(x + i), va, vb), y + i);
  });
}

}  // namespace

HWY_NOINLINE void moments_of_f32(const float* x, int64_t count, float* mean, float* variance) {
  row_moments(x, static_cast<size_t>(count), *mean, *variance);
}
HWY_NOINLINE void layer_norm_of_f32(const float* x, const float* scale, const float* bias, float* y,
                                    int64_t rows, int64_t cols, float epsilon, float* mean,
                                    float* inverse_deviation) {
  layer_norm(x, scale, bias, y, rows, cols, epsilon, mean, inverse_deviation);
}
HWY_NOINLINE void affine_of_f32(const float* x, float* y, int64_t count, float a, float b) {
  affine(x, y, count, a, b);
}
HWY_NOINLINE void moments_of_f64(const double* x, int64_t count, double* mean, double* variance) {
  row_moments(x, static_cast<size_t>(count), *mean, *variance);
}
HWY_NOINLINE void layer_norm_of_f64(const double* x, const double* scale, const double* bias, double* y,
                                    int64_t rows, int64_t cols, float epsilon, float* mean,
                                    float* inverse_deviation) {
  layer_norm(x, scale, bias, y, rows, cols, epsilon, mean, inverse_deviation);
}
HWY_NOINLINE void affine_of_f64(const double* x, double* y, int64_t count, double a, double b) {
  affine(x, y, count, a, b);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(moments_of_f32);
HWY_EXPORT(layer_norm_of_f32);
HWY_EXPORT(affine_of_f32);
HWY_EXPORT(moments_of_f64);
HWY_EXPORT(layer_norm_of_f64);
HWY_EXPORT(affine_of_f64);

Moments moments_f32(const float* x, int64_t count) {
  Moments result;
  HWY_DYNAMIC_DISPATCH(moments_of_f32)(x, count, &result.mean, &result.variance);
  return result;
}

void layer_norm_f32(const float* x, const float* scale, const float* bias, float* y, int64_t rows,
                    int64_t cols, float epsilon, float* mean, float* inverse_deviation) {
  HWY_DYNAMIC_DISPATCH(layer_norm_of_f32)(x, scale, bias, y, rows, cols, epsilon, mean, inverse_deviation);
}

void affine_f32(const float* x, float* y, int64_t count, float a, float b) {
  HWY_DYNAMIC_DISPATCH(affine_of_f32)(x, y, count, a, b);
}

WideMoments moments_f64(const double* x, int64_t count) {
  WideMoments result;
  HWY_DYNAMIC_DISPATCH(moments_of_f64)(x, count, &result.mean, &result.variance);
  return result;
}

void layer_norm_f64(const double* x, const double* scale, const double* bias, double* y, int64_t rows,
                    int64_t cols, float epsilon, float* mean, float* inverse_deviation) {
  HWY_DYNAMIC_DISPATCH(layer_norm_of_f64)(x, scale, bias, y, rows, cols, epsilon, mean, inverse_deviation);
}

void affine_f64(const double* x, double* y, int64_t count, double a, double b) {
  HWY_DYNAMIC_DISPATCH(affine_of_f64)(x, y, count, a, b);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
