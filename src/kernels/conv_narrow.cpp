#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_narrow.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv_narrow-inl.h"

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {

HWY_EXPORT(narrow_lanes);
HWY_EXPORT(narrow_pack);
HWY_EXPORT(narrow_run);

}  // namespace

bool is_narrow_group_conv(const ConvShape& s) {
  constexpr int64_t kWidest = 32;
  if (s.groups < 2 || s.in_c != s.out_c) return false;
  const int64_t width = s.in_c / s.groups, lanes = HWY_DYNAMIC_DISPATCH(narrow_lanes)();
  if (width < lanes) return width == 2 || width == 4 || width == 8;
  return width % lanes == 0 && width <= kWidest;
}

size_t conv_narrow_packed_bytes(const ConvShape& s) {
  const int64_t channels = round_up(s.in_c, HWY_DYNAMIC_DISPATCH(narrow_lanes)());
  const int64_t taps = checked_mul(checked_mul(s.kernel_h, s.kernel_w), s.in_c / s.groups);
  return static_cast<size_t>(round_up(checked_mul(checked_mul(taps, channels), sizeof(float)), 64));
}

void conv_narrow_pack(const ConvShape& shape, const ConvWeights<>& weights, float* packed) {
  HWY_DYNAMIC_DISPATCH(narrow_pack)(shape, weights, packed);
}

void conv_narrow(const ConvShape& shape, const float* x, const float* packed, float* y,
                 const ConvEpilogue<>& epilogue, int threads) {
  HWY_DYNAMIC_DISPATCH(narrow_run)(shape, x, packed, y, epilogue, threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
