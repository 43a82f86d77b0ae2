#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

const GemmFunctions<float>* gemm_f32() {
  return gemm_table<float>();
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(gemm_f32);

template <>
const GemmFunctions<float>& gemm_functions() {
  return *HWY_DYNAMIC_DISPATCH(gemm_f32)();
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
