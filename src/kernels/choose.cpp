#include "kernels/choose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/choose.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// An operand of a row: its elements side by side, or one for all.
struct Operand {
  const uint32_t* at;
  bool is_one;

  template <class D>
  HWY_INLINE hn::Vec<D> vector(D d, int64_t i) const {
    return is_one ? hn::Set(d, *at) : hn::LoadU(d, at + i);
  }
  HWY_INLINE uint32_t element(int64_t i) const { return at[is_one ? 0 : i]; }
};

HWY_INLINE void choose_row(const uint8_t* condition, Operand a, Operand b, uint32_t* y, int64_t count) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(bytes, condition + i));
    hn::StoreU(hn::IfThenElse(hn::Ne(wide, hn::Zero(d)), a.vector(d, i), b.vector(d, i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = condition[i] != 0 ? a.element(i) : b.element(i);
}

HWY_INLINE void copy_row(Operand from, uint32_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = from.element(i);
}

}  // namespace

HWY_NOINLINE void choose_block(const BroadcastBlock& s, const uint8_t* condition, const uint32_t* a,
                               const uint32_t* b, uint32_t* y) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const uint8_t* row = condition + s.offset[0] + r * s.row_stride[0];
    const Operand of_a{a + s.offset[1] + r * s.row_stride[1], s.col_stride[1] == 0};
    const Operand of_b{b + s.offset[2] + r * s.row_stride[2], s.col_stride[2] == 0};
    uint32_t* to = y + s.output + r * s.output_row;
    if (s.col_stride[0] != 0) {
      choose_row(row, of_a, of_b, to, s.cols);
    } else {
      copy_row(*row != 0 ? of_a : of_b, to, s.cols);
    }
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(choose_block);

void choose(const BroadcastBlock& block, const uint8_t* condition, const uint32_t* a, const uint32_t* b,
            uint32_t* y) {
  HWY_DYNAMIC_DISPATCH(choose_block)(block, condition, a, b, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
