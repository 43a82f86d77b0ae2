// The lesser and the greater of two floats as x86 has them, once per target: the second operand if one is
// NaN.
#if defined(PLIMSOLL_KERNELS_MIN_MAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_MIN_MAX_INL_H_
#undef PLIMSOLL_KERNELS_MIN_MAX_INL_H_
#else
#define PLIMSOLL_KERNELS_MIN_MAX_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Highway's own return the number on NEON, whichever operand it is.
template <class V>
HWY_INLINE V v_min(V a, V b) {
#if HWY_ARCH_ARM
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#else
  return hn::Min(a, b);
#endif
}
template <class V>
HWY_INLINE V v_max(V a, V b) {
#if HWY_ARCH_ARM
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#else
  return hn::Max(a, b);
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
