#include "kernels/int_depthwise.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int_depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <typename T>
void sum_taps(const IntDepthwise& job, const IntTap* taps, int64_t tap_count, int32_t* sums) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const hn::Rebind<T, decltype(d)> d8;
  const auto* x = static_cast<const T*>(job.x);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d, job.x_zero_point);
  int64_t c = 0;
  for (; c + lanes <= job.channels; c += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < tap_count; ++t) {
      const auto pixel = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, x + taps[t].x + c)), zero);
      sum = hn::Add(sum, hn::Mul(pixel, hn::PromoteTo(d, hn::LoadU(d16, job.w + taps[t].w + c))));
    }
    hn::StoreU(sum, d, sums + c);
  }
  for (; c < job.channels; ++c) {
    int32_t sum = 0;
    for (int64_t t = 0; t < tap_count; ++t)
      sum += (x[taps[t].x + c] - job.x_zero_point) * job.w[taps[t].w + c];
    sums[c] = sum;
  }
}

float scaled(const IntGemmFinish& f, const int32_t* sums, int64_t c) {
  const int32_t sum = sums[c] + (f.bias != nullptr ? f.bias[c] : 0);
  return static_cast<float>(sum) * (f.scales != nullptr ? f.scales[c] : f.scale);
}

void depthwise_pixel(const IntDepthwise& job, const IntTap* taps, int64_t tap_count, int32_t* sums, void* y) {
  if (job.x_signed) {
    sum_taps<int8_t>(job, taps, tap_count, sums);
  } else {
    sum_taps<uint8_t>(job, taps, tap_count, sums);
  }
  const IntGemmFinish& f = job.finish;
  if (job.type == IntGemmResult::kInt32) {
    for (int64_t c = 0; c < job.channels; ++c)
      static_cast<int32_t*>(y)[c] = sums[c] + (f.bias != nullptr ? f.bias[c] : 0);
  } else if (job.type == IntGemmResult::kFloat) {
    for (int64_t c = 0; c < job.channels; ++c)
      static_cast<float*>(y)[c] = scaled(f, sums, c) + (f.float_bias != nullptr ? f.float_bias[c] : 0);
  } else {
    const int32_t least = job.type == IntGemmResult::kInt8 ? -128 : 0;
    const auto low = static_cast<float>(least - f.zero_point), high = low + 255;
    for (int64_t c = 0; c < job.channels; ++c) {
      const float value = std::rint(std::min(std::max(scaled(f, sums, c), low), high));
      static_cast<uint8_t*>(y)[c] = static_cast<uint8_t>(static_cast<int32_t>(value) + f.zero_point);
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(depthwise_pixel);
}  // namespace

void int_depthwise(const IntDepthwise& job, const IntTap* taps, int64_t tap_count, int32_t* sums, void* y) {
  HWY_DYNAMIC_DISPATCH(depthwise_pixel)(job, taps, tap_count, sums, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
