// Products of 16-bit numbers, added up two by two, once per target.
#if defined(PLIMSOLL_KERNELS_PAIR_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_PAIR_PRODUCTS_INL_H_
#undef PLIMSOLL_KERNELS_PAIR_PRODUCTS_INL_H_
#else
#define PLIMSOLL_KERNELS_PAIR_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// sum[i] + a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]. What Highway accumulates is not in order on
// NEON, so it starts at zero and is put in order before it meets `sum`; on x86 that compiles to nothing.
template <typename V16>
HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> add_pair_products(hn::Vec<hn::ScalableTag<int32_t>> sum, V16 a,
                                                               V16 b) {
  const hn::ScalableTag<int32_t> d;
  auto other = hn::Zero(d);
  const auto products = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), other);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(products, other));
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
