#include "kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/unary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

void map_f32(const Unary& f, const float* x, float* y, int64_t count) {
  map_any(f, x, y, count);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(map_f32);

void unary_f32(const Unary& f, const float* x, float* y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(map_f32)(f, x, y, count);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
