#include "kernels/inner_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/inner_products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

// One row against one row; step(sum, x, w) adds a vector's part.
template <class Step>
HWY_INLINE float reduce_pair(const float* x, const float* w, int64_t features, Step step) {
  const FloatTag d;
  FloatVec sum = hn::Zero(d), other = sum;
  int64_t i = 0;
  for (; i + 2 * kFloatLanes <= features; i += 2 * kFloatLanes) {
    sum = step(sum, hn::LoadU(d, x + i), hn::LoadU(d, w + i));
    other = step(other, hn::LoadU(d, x + i + kFloatLanes), hn::LoadU(d, w + i + kFloatLanes));
  }
  for (; i < features; i += kFloatLanes)
    sum = step(sum, load_lanes(x + i, features - i), load_lanes(w + i, features - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other)));
}

void inner_products(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                    const float* bias, float* y) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < targets; ++j)
      y[i * targets + j] =
          reduce_pair(x + i * features, w + j * features, features,
                      [](FloatVec s, FloatVec a, FloatVec b) HWY_ATTR { return hn::MulAdd(a, b, s); }) +
          (bias != nullptr ? bias[j] : 0.f);
  }
}

void squared_distances(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                       float* y) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < targets; ++j)
      y[i * targets + j] = reduce_pair(x + i * features, w + j * features, features,
                                       [](FloatVec s, FloatVec a, FloatVec b) HWY_ATTR {
                                         const FloatVec difference = hn::Sub(a, b);
                                         return hn::MulAdd(difference, difference, s);
                                       });
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(inner_products);
HWY_EXPORT(squared_distances);

void inner_products_f32(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                        const float* bias, float* y) {
  HWY_DYNAMIC_DISPATCH(inner_products)(x, rows, w, targets, features, bias, y);
}

void squared_distances_f32(const float* x, int64_t rows, const float* w, int64_t targets, int64_t features,
                           float* y) {
  HWY_DYNAMIC_DISPATCH(squared_distances)(x, rows, w, targets, features, y);
}

}  // namespace plimsoll::kernels
#endif
