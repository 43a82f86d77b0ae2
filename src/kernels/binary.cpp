#include "kernels/binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/min_max-inl.h"
#include "kernels/power-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {

namespace {

// One row; an operand with stride 0 is one number.
template <bool kVectorA, bool kVectorB, class T, class F>
HWY_INLINE void row(const T* a, const T* b, T* y, size_t count, F f) {
  using W = LaneOf<T>;
  const hn::ScalableTag<W> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V a0 = hn::Set(d, kVectorA ? W{0} : static_cast<W>(*a));
  const V b0 = hn::Set(d, kVectorB ? W{0} : static_cast<W>(*b));
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V va = kVectorA ? load_all(d, a + i) : a0;
    const V vb = kVectorB ? load_all(d, b + i) : b0;
    store_all(d, f(va, vb), y + i);
  }
  if (i == count) return;
  const V va = kVectorA ? load_tail(d, a + i, count - i) : a0;
  const V vb = kVectorB ? load_tail(d, b + i, count - i) : b0;
  store_tail(d, f(va, vb), y + i, count - i);
}

template <bool kVectorA, bool kVectorB, class T, class F>
HWY_INLINE void rows(const BroadcastBlock& s, const T* a, const T* b, T* y, F f) {
  for (int64_t r = 0; r < s.rows; ++r)
    row<kVectorA, kVectorB>(a + r * s.row_stride[0], b + r * s.row_stride[1], y + r * s.output_row,
                            static_cast<size_t>(s.cols), f);
}

template <class T, class F>
HWY_INLINE void block(const BroadcastBlock& s, const T* a, const T* b, T* y, F f) {
  a += s.offset[0];
  b += s.offset[1];
  y += s.output;
  if (s.col_stride[0] != 0 && s.col_stride[1] != 0) return rows<true, true>(s, a, b, y, f);
  if (s.col_stride[0] != 0) return rows<true, false>(s, a, b, y, f);
  if (s.col_stride[1] != 0) return rows<false, true>(s, a, b, y, f);
  return rows<false, false>(s, a, b, y, f);
}

template <class T>
HWY_INLINE void compute_block(BinaryKind f, const BroadcastBlock& s, const T* a, const T* b, T* y) {
  using D = hn::ScalableTag<LaneOf<T>>;
  using V = hn::Vec<D>;
  switch (f) {
    case BinaryKind::kAdd:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
    case BinaryKind::kSub:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR { return hn::Sub(u, v); });
    case BinaryKind::kMul:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR { return hn::Mul(u, v); });
    case BinaryKind::kDiv:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR { return hn::Div(u, v); });
    case BinaryKind::kMin:  // the instruction returns the second operand on NaN
      return block(s, a, b, y,
                   [](V u, V v) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(u), u, v_min(u, v)); });
    case BinaryKind::kMax:
      return block(s, a, b, y,
                   [](V u, V v) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(u), u, v_max(u, v)); });
    case BinaryKind::kPrelu:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(u, hn::Zero(D())), hn::Mul(u, v), u);
      });
    case BinaryKind::kPow:
      return block(s, a, b, y, [](V u, V v) HWY_ATTR { return v_pow(D(), u, v); });
    case BinaryKind::kGate:
      return block(s, a, b, y,
                   [](V u, V v) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(u, hn::Zero(D())), v); });
  }
}

}  // namespace

HWY_NOINLINE void binary_of_f32(BinaryKind f, const BroadcastBlock& s, const float* a, const float* b,
                                float* y) {
  compute_block(f, s, a, b, y);
}
HWY_NOINLINE void binary_of_f64(BinaryKind f, const BroadcastBlock& s, const double* a, const double* b,
                                double* y) {
  compute_block(f, s, a, b, y);
}
HWY_NOINLINE void binary_of_f16(BinaryKind f, const BroadcastBlock& s, const Float16* a, const Float16* b,
                                Float16* y) {
  compute_block(f, s, a, b, y);
}
HWY_NOINLINE void binary_of_bf16(BinaryKind f, const BroadcastBlock& s, const BFloat16* a, const BFloat16* b,
                                 BFloat16* y) {
  compute_block(f, s, a, b, y);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(binary_of_f32);
HWY_EXPORT(binary_of_f64);
HWY_EXPORT(binary_of_f16);
HWY_EXPORT(binary_of_bf16);

void binary(BinaryKind f, const BroadcastBlock& block, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(binary_of_f32)(f, block, a, b, y);
}
void binary(BinaryKind f, const BroadcastBlock& block, const double* a, const double* b, double* y) {
  HWY_DYNAMIC_DISPATCH(binary_of_f64)(f, block, a, b, y);
}
void binary(BinaryKind f, const BroadcastBlock& block, const Float16* a, const Float16* b, Float16* y) {
  HWY_DYNAMIC_DISPATCH(binary_of_f16)(f, block, a, b, y);
}
void binary(BinaryKind f, const BroadcastBlock& block, const BFloat16* a, const BFloat16* b, BFloat16* y) {
  HWY_DYNAMIC_DISPATCH(binary_of_bf16)(f, block, a, b, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
