#include "kernels/patches.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/patches.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

template <class T>
HWY_NOINLINE void runs_of(const T* from, int64_t from_stride, LaneOf<T>* to, int64_t to_stride,
                          int64_t length, int64_t count) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  if (length == 2 * kLanes) {
    for (int64_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
      const VecOf<T> low = load_all(d, from), high = load_all(d, from + kLanes);
      hn::StoreU(low, d, to);
      hn::StoreU(high, d, to + kLanes);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
    for (int64_t k = 0; k < length; k += kLanes)
      store_lanes(load_lanes(from + k, length - k), to + k, length - k);
  }
}

template <class T>
HWY_NOINLINE void products_of(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t channels,
                              int64_t count, LaneOf<T>* to) {
  for (int64_t c = 0; c < channels; c += kLanesOf<T>) {
    const int64_t lanes = channels - c;
    VecOf<T> sum = load_lanes(to + c, lanes);
    for (int64_t i = 0; i < count; ++i)
      sum = hn::MulAdd(load_lanes(a + i * a_stride + c, lanes), load_lanes(b + i * b_stride + c, lanes), sum);
    store_lanes(sum, to + c, lanes);
  }
}

#define PLIMSOLL_PATCHES(T, name)                                                                        \
  void name##_runs(const T* from, int64_t from_stride, LaneOf<T>* to, int64_t to_stride, int64_t length, \
                   int64_t count) {                                                                      \
    runs_of<T>(from, from_stride, to, to_stride, length, count);                                         \
  }                                                                                                      \
  void name##_products(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t channels,     \
                       int64_t count, LaneOf<T>* to) {                                                   \
    products_of<T>(a, a_stride, b, b_stride, channels, count, to);                                       \
  }
PLIMSOLL_PATCHES(float, f32)
PLIMSOLL_PATCHES(double, f64)
PLIMSOLL_PATCHES(Float16, f16)
PLIMSOLL_PATCHES(BFloat16, bf16)
#undef PLIMSOLL_PATCHES

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_PATCHES(T, name)                                                                            \
  HWY_EXPORT(name##_runs);                                                                                   \
  HWY_EXPORT(name##_products);                                                                               \
  template <>                                                                                                \
  void copy_runs<T>(const T* from, int64_t from_stride, LaneOf<T>* to, int64_t to_stride, int64_t length,    \
                    int64_t count) {                                                                         \
    HWY_DYNAMIC_DISPATCH(name##_runs)(from, from_stride, to, to_stride, length, count);                      \
  }                                                                                                          \
  template <>                                                                                                \
  void add_channel_products<T>(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t channels, \
                               int64_t count, LaneOf<T>* to) {                                               \
    HWY_DYNAMIC_DISPATCH(name##_products)(a, a_stride, b, b_stride, channels, count, to);                    \
  }
PLIMSOLL_PATCHES(float, f32)
PLIMSOLL_PATCHES(double, f64)
PLIMSOLL_PATCHES(Float16, f16)
PLIMSOLL_PATCHES(BFloat16, bf16)
#undef PLIMSOLL_PATCHES

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
