#include "kernels/scale_shift.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale_shift.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/activation-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

namespace {

template <class T, class F>
HWY_INLINE void scale_shift_row(const ScaleShiftRows& r, const T* x, const T* z, T* y, F f) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V one_scale = hn::Set(d, r.scale[0]);
  const V one_shift = hn::Set(d, r.shift[0]);
  int64_t i = 0;
  for (; i + lanes <= r.width; i += lanes) {
    const V scale = r.scale_varies ? hn::LoadU(d, r.scale + i) : one_scale;
    V shift = r.shift_varies ? hn::LoadU(d, r.shift + i) : one_shift;
    if (z != nullptr) shift = hn::Add(shift, load_all(d, z + i));
    store_all(d, f(hn::MulAdd(load_all(d, x + i), scale, shift)), y + i);
  }
  if (i == r.width) return;
  const auto rest = static_cast<size_t>(r.width - i);
  const V scale = r.scale_varies ? load_tail(d, r.scale + i, rest) : one_scale;
  V shift = r.shift_varies ? load_tail(d, r.shift + i, rest) : one_shift;
  if (z != nullptr) shift = hn::Add(shift, load_tail(d, z + i, rest));
  store_tail(d, f(hn::MulAdd(load_tail(d, x + i, rest), scale, shift)), y + i, rest);
}

template <class T>
void compute_rows(const ScaleShiftRows& r, const T* x, const T* z, T* y) {
  const hn::CappedTag<float, 16> d;
  with_activation(d, r.activation, [&](auto f) HWY_ATTR {
    for (int64_t row = 0; row < r.rows; ++row) {
      const int64_t at = row * r.width;
      scale_shift_row(r, x + at, z == nullptr ? nullptr : z + at, y + at, f);
    }
  });
}

}  // namespace

void scale_shift_of_f32(const ScaleShiftRows& r, const float* x, const float* z, float* y) {
  compute_rows(r, x, z, y);
}
void scale_shift_of_f16(const ScaleShiftRows& r, const Float16* x, const Float16* z, Float16* y) {
  compute_rows(r, x, z, y);
}
void scale_shift_of_bf16(const ScaleShiftRows& r, const BFloat16* x, const BFloat16* z, BFloat16* y) {
  compute_rows(r, x, z, y);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(scale_shift_of_f32);
HWY_EXPORT(scale_shift_of_f16);
HWY_EXPORT(scale_shift_of_bf16);

void scale_shift(const ScaleShiftRows& rows, const float* x, const float* addend, float* y) {
  HWY_DYNAMIC_DISPATCH(scale_shift_of_f32)(rows, x, addend, y);
}
void scale_shift(const ScaleShiftRows& rows, const Float16* x, const Float16* addend, Float16* y) {
  HWY_DYNAMIC_DISPATCH(scale_shift_of_f16)(rows, x, addend, y);
}
void scale_shift(const ScaleShiftRows& rows, const BFloat16* x, const BFloat16* addend, BFloat16* y) {
  HWY_DYNAMIC_DISPATCH(scale_shift_of_bf16)(rows, x, addend, y);
}

}  // namespace plimsoll::kernels
#endif
