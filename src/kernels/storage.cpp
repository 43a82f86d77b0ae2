#include "kernels/storage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/storage.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void widen_run(const T* from, float* to, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_all(d, from + i), d, to + i);
  if (i < count) store_first(d, load_first(d, from + i, count - i), to + i, count - i);
}

template <class T>
HWY_INLINE void narrow_run(const float* from, T* to, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) store_all(d, hn::LoadU(d, from + i), to + i);
  if (i < count) store_first(d, load_first(d, from + i, count - i), to + i, count - i);
}

void widen_f16(const Float16* from, float* to, size_t count) {
  widen_run(from, to, count);
}
void widen_bf16(const BFloat16* from, float* to, size_t count) {
  widen_run(from, to, count);
}
void narrow_f16(const float* from, Float16* to, size_t count) {
  narrow_run(from, to, count);
}
void narrow_bf16(const float* from, BFloat16* to, size_t count) {
  narrow_run(from, to, count);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16);
}  // namespace

void widen(const Float16* from, float* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(from, to, static_cast<size_t>(count));
}
void widen(const BFloat16* from, float* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(from, to, static_cast<size_t>(count));
}
void narrow(const float* from, Float16* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_f16)(from, to, static_cast<size_t>(count));
}
void narrow(const float* from, BFloat16* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_bf16)(from, to, static_cast<size_t>(count));
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
