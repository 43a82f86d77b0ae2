#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

const ConvFunctions<float>* conv_f32() {
  return conv_table<float>();
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(conv_f32);

template <>
const ConvFunctions<float>& conv_functions() {
  return *HWY_DYNAMIC_DISPATCH(conv_f32)();
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
