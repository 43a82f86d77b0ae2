#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise_bf16.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/depthwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

const DepthwiseFunctions<BFloat16>* depthwise_bf16() {
  return depthwise_table<BFloat16>();
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(depthwise_bf16);

template <>
const DepthwiseFunctions<BFloat16>& depthwise_functions() {
  return *HWY_DYNAMIC_DISPATCH(depthwise_bf16)();
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
