#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/depthwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

const DepthwiseFunctions<float>* depthwise_f32() {
  return depthwise_table<float>();
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(depthwise_f32);

template <>
const DepthwiseFunctions<float>& depthwise_functions() {
  return *HWY_DYNAMIC_DISPATCH(depthwise_f32)();
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
