#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/winograd-inl.h"

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {

HWY_EXPORT(winograd_table);

const WinogradTable& table() {
  return *HWY_DYNAMIC_DISPATCH(winograd_table)();
}

template <class T>
const WinogradFunctions<T>& functions() {
  if constexpr (std::is_same_v<T, float>) {
    return table().floats;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return table().halves;
  } else {
    return table().brains;
  }
}

size_t whole_lines(int64_t floats) {
  return static_cast<size_t>(round_up(checked_mul(floats, sizeof(float)), kConvAlignment));
}

}  // namespace

bool winograd_applies(const ConvShape& s) {
  return s.groups == 1 && s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1;
}

int64_t winograd_tiles(const ConvShape& shape, WinogradForm form) {
  return plan_winograd(shape, form, table().vectors, 1).tiles;
}

size_t winograd_packed_bytes(const ConvShape& shape, WinogradForm form) {
  const WinogradVectors& v = table().vectors;
  return whole_lines(winograd_weight_floats(shape, plan_channels(shape, form, v), v.lanes));
}

template <class T>
void winograd_pack(const ConvShape& shape, WinogradForm form, const ConvWeights<T>& weights, void* packed,
                   int threads) {
  const auto& f = functions<T>();
  (form == WinogradForm::kTwo ? f.pack_two : f.pack_four)(shape, weights, static_cast<float*>(packed),
                                                          threads);
}
template void winograd_pack<float>(const ConvShape&, WinogradForm, const ConvWeights<float>&, void*, int);
template void winograd_pack<Float16>(const ConvShape&, WinogradForm, const ConvWeights<Float16>&, void*, int);
template void winograd_pack<BFloat16>(const ConvShape&, WinogradForm, const ConvWeights<BFloat16>&, void*,
                                      int);

size_t winograd_scratch_bytes(const ConvShape& shape, WinogradForm form, int threads) {
  const WinogradPlan plan = plan_winograd(shape, form, table().vectors, threads);
  return plan.tiles == 0 ? 0 : whole_lines(winograd_scratch_floats(plan, threads));
}

size_t winograd_most_scratch_bytes(const ConvShape& shape, WinogradForm form, int threads) {
  const WinogradVectors& v = table().vectors;
  WinogradPlan plan = plan_channels(shape, form, v);
  set_block(plan, v, most_block_tiles(shape, plan, v));
  plan.blocks = threads;
  return whole_lines(winograd_scratch_floats(plan, threads));
}

template <class T>
void winograd(const ConvShape& shape, WinogradForm form, const T* x, const void* packed, T* y,
              const ConvEpilogue<T>& epilogue, void* scratch, int threads) {
  ConvShape s = shape;
  if (s.out_pixel_stride == 0) s.out_pixel_stride = s.out_c;
  if (s.out_row_stride == 0) s.out_row_stride = s.out_w * s.out_pixel_stride;
  if (s.out_image_stride == 0) s.out_image_stride = s.out_h * s.out_row_stride;
  const auto& f = functions<T>();
  const WinogradPlan plan = plan_winograd(s, form, table().vectors, threads);
  if (plan.tiles == 0 || s.out_c == 0) return;
  (form == WinogradForm::kTwo ? f.run_two : f.run_four)(
      {s, plan, x, static_cast<const float*>(packed), y, epilogue, threads}, static_cast<float*>(scratch));
}
template void winograd<float>(const ConvShape&, WinogradForm, const float*, const void*, float*,
                              const ConvEpilogue<float>&, void*, int);
template void winograd<Float16>(const ConvShape&, WinogradForm, const Float16*, const void*, Float16*,
                                const ConvEpilogue<Float16>&, void*, int);
template void winograd<BFloat16>(const ConvShape&, WinogradForm, const BFloat16*, const void*, BFloat16*,
                                 const ConvEpilogue<BFloat16>&, void*, int);

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
