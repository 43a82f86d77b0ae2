// A multiply-add into a register that stays where it is, once per target: for tiles that need all 16
// registers.
#if defined(PLIMSOLL_KERNELS_ACCUMULATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_ACCUMULATE_INL_H_
#undef PLIMSOLL_KERNELS_ACCUMULATE_INL_H_
#else
#define PLIMSOLL_KERNELS_ACCUMULATE_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// sum += x * y. Left to itself GCC lets the result take the register of x and moves sums around, loads y
// again for each use, and spills some: a quarter of a tile's time.
template <class V>
HWY_INLINE void accumulate(V& sum, V x, V y) {
#if HWY_TARGET == HWY_AVX2 && HWY_COMPILER_GCC_ACTUAL
  if constexpr (std::is_same_v<hn::TFromV<V>, float>) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum.raw) : "x"(x.raw), "x"(y.raw));
    return;
  } else if constexpr (std::is_same_v<hn::TFromV<V>, double>) {
    __asm__("vfmadd231pd %2, %1, %0" : "+x"(sum.raw) : "x"(x.raw), "x"(y.raw));
    return;
  }
#endif
  sum = hn::MulAdd(x, y, sum);
#if HWY_TARGET > HWY_AVX3 && HWY_COMPILER_GCC
  __asm__ volatile("" : "+x"(sum.raw));
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
