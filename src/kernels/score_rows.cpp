#include "kernels/score_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/score_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/row_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

// x += mask; returns the largest.
HWY_INLINE float add_and_max(float* x, const float* mask, size_t count) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V largest = least;
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V v = hn::LoadU(d, x + i);
    if (mask != nullptr) {
      v = hn::Add(v, hn::LoadU(d, mask + i));
      hn::StoreU(v, d, x + i);
    }
    largest = hn::Max(largest, v);
  }
  if (i < count) {
    V v = load_tail(d, x + i, count - i);
    if (mask != nullptr) {
      v = hn::Add(v, load_tail(d, mask + i, count - i));
      store_tail(d, v, x + i, count - i);
    }
    largest = hn::Max(largest, hn::IfThenElse(hn::FirstN(d, count - i), v, least));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

}  // namespace

HWY_NOINLINE void score_rows(float* scores, int64_t rows, int64_t cols, int64_t stride, const float* mask,
                             int64_t mask_stride, float* factors) {
  const auto count = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * stride;
    const float largest = add_and_max(row, mask == nullptr ? nullptr : mask + r * mask_stride, count);
    factors[r] = 1.0f / exp_row(Tag(), row, row, count, largest);
  }
}

HWY_NOINLINE void scale_rows(float* y, int64_t rows, int64_t cols, int64_t stride, const float* factors) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), count = static_cast<size_t>(cols);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = y + r * stride;
    const V factor = hn::Set(d, factors[r]);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, row + i), factor), d, row + i);
    if (i < count) store_tail(d, hn::Mul(load_tail(d, row + i, count - i), factor), row + i, count - i);
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(score_rows);
HWY_EXPORT(scale_rows);

void score_rows_f32(float* scores, int64_t rows, int64_t cols, int64_t stride, const float* mask,
                    int64_t mask_stride, float* factors) {
  HWY_DYNAMIC_DISPATCH(score_rows)(scores, rows, cols, stride, mask, mask_stride, factors);
}
void scale_rows_f32(float* y, int64_t rows, int64_t cols, int64_t stride, const float* factors) {
  HWY_DYNAMIC_DISPATCH(scale_rows)(y, rows, cols, stride, factors);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
