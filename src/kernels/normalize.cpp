#include "kernels/normalize.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE void row_moments(const float* x, size_t count, float& mean, float& variance) {
  const D d;
  const double n = static_cast<double>(count);
  mean = static_cast<float>(row_sum(d, x, count, [](V v) HWY_ATTR { return v; }) / n);
  const V center = hn::Set(d, mean);
  const auto squared_distance = [=](V v) HWY_ATTR {
    const V distance = hn::Sub(v, center);
    return hn::Mul(distance, distance);
  };
  variance = static_cast<float>(row_sum(d, x, count, squared_distance) / n);
}

// Calls step(i, load, store) for every vector of a row, the narrower last one included.
template <class F>
HWY_INLINE void for_each_vector(size_t count, F f) {
  const size_t lanes = hn::Lanes(D());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    f(
        i, [](const float* from) HWY_ATTR { return hn::LoadU(D(), from); },
        [](V v, float* to) HWY_ATTR { hn::StoreU(v, D(), to); });
  const size_t rest = count - i;
  if (rest > 0)
    f(
        i, [rest](const float* from) HWY_ATTR { return load_tail(D(), from, rest); },
        [rest](V v, float* to) HWY_ATTR { store_tail(D(), v, to, rest); });
}

HWY_NOINLINE void moments(const float* x, int64_t count, Moments* result) {
  row_moments(x, static_cast<size_t>(count), result->mean, result->variance);
}

HWY_NOINLINE void layer_norm(const float* x, const float* scale, const float* bias, float* y, int64_t rows,
                             int64_t cols, float epsilon, float* mean, float* inverse_deviation) {
  const D d;
  const auto n = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float center, variance;
    row_moments(x, n, center, variance);
    const float inverse = 1.0f / std::sqrt(variance + epsilon);
    if (mean != nullptr) mean[r] = center;
    if (inverse_deviation != nullptr) inverse_deviation[r] = inverse;
    const V vcenter = hn::Set(d, center), vinverse = hn::Set(d, inverse);
    const auto normal = [=](V v) HWY_ATTR { return hn::Mul(hn::Sub(v, vcenter), vinverse); };
    if (bias != nullptr) {
      for_each_vector(n, [=](size_t i, auto load, auto store) HWY_ATTR {
        store(hn::MulAdd(normal(load(x + i)), load(scale + i), load(bias + i)), y + i);
      });
    } else {
      for_each_vector(n, [=](size_t i, auto load, auto store)
                             HWY_ATTR { store(hn::Mul(normal(load(x + i)), load(scale + i)), y + i); });
    }
  }
}

HWY_NOINLINE void affine(const float* x, float* y, int64_t count, float a, float b) {
  const V va = hn::Set(D(), a), vb = hn::Set(D(), b);
  for_each_vector(static_cast<size_t>(count), [=](size_t i, auto load, auto store) HWY_ATTR {
    store(hn::MulAdd(load(x + i), va, vb), y + i);
  });
}

HWY_NOINLINE void affine_rows(const float* x, float* y, int64_t rows, int64_t cols, const float* a,
                              const float* b) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols)
    for_each_vector(static_cast<size_t>(cols), [=](size_t i, auto load, auto store) HWY_ATTR {
      store(hn::MulAdd(load(x + i), load(a + i), load(b + i)), y + i);
    });
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(moments);
HWY_EXPORT(layer_norm);
HWY_EXPORT(affine);
HWY_EXPORT(affine_rows);

Moments moments_f32(const float* x, int64_t count) {
  Moments result;
  HWY_DYNAMIC_DISPATCH(moments)(x, count, &result);
  return result;
}

void layer_norm_f32(const float* x, const float* scale, const float* bias, float* y, int64_t rows,
                    int64_t cols, float epsilon, float* mean, float* inverse_deviation) {
  HWY_DYNAMIC_DISPATCH(layer_norm)(x, scale, bias, y, rows, cols, epsilon, mean, inverse_deviation);
}

void affine_f32(const float* x, float* y, int64_t count, float a, float b) {
  HWY_DYNAMIC_DISPATCH(affine)(x, y, count, a, b);
}

void affine_rows_f32(const float* x, float* y, int64_t rows, int64_t cols, const float* a, const float* b) {
  HWY_DYNAMIC_DISPATCH(affine_rows)(x, y, rows, cols, a, b);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
