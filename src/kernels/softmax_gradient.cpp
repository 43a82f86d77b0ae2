#include "kernels/softmax_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE VecOf<T> gradient_of(bool logarithm, VecOf<T> y, VecOf<T> dy, VecOf<T> sum) {
  const TagOf<T> d;
  return logarithm ? hn::NegMulAdd(v_exp(d, y), sum, dy) : hn::Mul(y, hn::Sub(dy, sum));
}

template <class T>
HWY_INLINE LaneOf<T> row_sum_of(bool logarithm, const T* y, const T* dy, int64_t cols) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  VecOf<T> s0 = hn::Zero(d), s1 = s0;
  const auto term = [&](int64_t i, VecOf<T> sum) HWY_ATTR {
    const VecOf<T> g = load_lanes(dy + i, cols - i);
    return logarithm ? hn::Add(sum, g) : hn::MulAdd(load_lanes(y + i, cols - i), g, sum);
  };
  int64_t i = 0;
  for (; i + kLanes < cols; i += 2 * kLanes) {
    s0 = term(i, s0);
    s1 = term(i + kLanes, s1);
  }
  if (i < cols) s0 = term(i, s0);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

}  // namespace

template <class T>
HWY_NOINLINE void rows_of(bool logarithm, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const VecOf<T> sum = hn::Set(TagOf<T>(), row_sum_of<T>(logarithm, y, dy, cols));
    for (int64_t i = 0; i < cols; i += kLanesOf<T>)
      store_lanes(gradient_of<T>(logarithm, load_lanes(y + i, cols - i), load_lanes(dy + i, cols - i), sum),
                  dx + i, cols - i);
  }
}

template <class T>
HWY_NOINLINE void columns_of(bool logarithm, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols,
                             int64_t stride) {
  for (int64_t c = 0; c < cols; c += kLanesOf<T>) {
    VecOf<T> sum = hn::Zero(TagOf<T>());
    for (int64_t i = c; i < rows * stride; i += stride) {
      const VecOf<T> g = load_lanes(dy + i, cols - c);
      sum = logarithm ? hn::Add(sum, g) : hn::MulAdd(load_lanes(y + i, cols - c), g, sum);
    }
    for (int64_t i = c; i < rows * stride; i += stride)
      store_lanes(gradient_of<T>(logarithm, load_lanes(y + i, cols - c), load_lanes(dy + i, cols - c), sum),
                  dx + i, cols - c);
  }
}

#define PLIMSOLL_SOFTMAX_GRADIENT(T, name)                                                                  \
  void name##_rows(bool l, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {                    \
    rows_of<T>(l, y, dy, dx, rows, cols);                                                                   \
  }                                                                                                         \
  void name##_columns(bool l, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols, int64_t stride) { \
    columns_of<T>(l, y, dy, dx, rows, cols, stride);                                                        \
  }
PLIMSOLL_SOFTMAX_GRADIENT(float, f32)
PLIMSOLL_SOFTMAX_GRADIENT(double, f64)
PLIMSOLL_SOFTMAX_GRADIENT(Float16, f16)
PLIMSOLL_SOFTMAX_GRADIENT(BFloat16, bf16)
#undef PLIMSOLL_SOFTMAX_GRADIENT

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_SOFTMAX_GRADIENT(T, name)                                                             \
  HWY_EXPORT(name##_rows);                                                                             \
  HWY_EXPORT(name##_columns);                                                                          \
  template <>                                                                                          \
  void softmax_gradient_rows<T>(bool l, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {  \
    HWY_DYNAMIC_DISPATCH(name##_rows)(l, y, dy, dx, rows, cols);                                       \
  }                                                                                                    \
  template <>                                                                                          \
  void softmax_gradient_columns<T>(bool l, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols, \
                                   int64_t stride) {                                                   \
    HWY_DYNAMIC_DISPATCH(name##_columns)(l, y, dy, dx, rows, cols, stride);                            \
  }
PLIMSOLL_SOFTMAX_GRADIENT(float, f32)
PLIMSOLL_SOFTMAX_GRADIENT(double, f64)
PLIMSOLL_SOFTMAX_GRADIENT(Float16, f16)
PLIMSOLL_SOFTMAX_GRADIENT(BFloat16, bf16)
#undef PLIMSOLL_SOFTMAX_GRADIENT

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
