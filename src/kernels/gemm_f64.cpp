#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

const GemmFunctions<double>* gemm_f64() {
  return gemm_table<double>();
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(gemm_f64);

template <>
const GemmFunctions<double>& gemm_functions() {
  return *HWY_DYNAMIC_DISPATCH(gemm_f64)();
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
