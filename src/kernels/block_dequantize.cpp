#include "kernels/block_dequantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/block_dequantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kStep = 32;  // elements that are bytes of their own for a moment

// kStep elements from 16 bytes, the low halves first in each.
HWY_INLINE void unpack_halves(const uint8_t* x, uint8_t* to) {
  const hn::Full128<uint8_t> d;
  const hn::Full128<uint16_t> d16;
  const auto mask = hn::Set(d, 0x0f);
  const auto both = hn::LoadU(d, x);
  const auto low = hn::And(both, mask);
  const auto high = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, both))), mask);
  hn::StoreU(hn::InterleaveLower(d, low, high), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low, high), d, to + 16);
}

HWY_INLINE void scale_bytes(const uint8_t* x, int64_t count, float scale, float zero, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale), less = hn::Set(d, zero);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, x + i)));
    hn::StoreU(hn::Mul(hn::Sub(value, less), by), d, y + i);
  }
  for (; i < count; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
}

template <int bits>
void dequantize_packed(const uint8_t* x, int64_t count, float scale, float zero, float* y) {
  constexpr int64_t kPerByte = 8 / bits;
  constexpr unsigned kMask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i += kStep) {
    const int64_t part = count - i < kStep ? count - i : kStep;
    uint8_t bytes[kStep];
    if (bits == 4 && part == kStep) {
      unpack_halves(x + i / 2, bytes);
    } else {
      for (int64_t k = 0; k < part; ++k)
        bytes[k] = static_cast<uint8_t>((x[(i + k) / kPerByte] >> ((i + k) % kPerByte * bits)) & kMask);
    }
    scale_bytes(bytes, part, scale, zero, y + i);
  }
}

void dequantize_any(const uint8_t* x, int bits, int64_t count, float scale, float zero, float* y) {
  if (bits == 8) return scale_bytes(x, count, scale, zero, y);
  if (bits == 4) return dequantize_packed<4>(x, count, scale, zero, y);
  dequantize_packed<2>(x, count, scale, zero, y);
}

float zero_of(const NBitsMatrix& m, int64_t column, int64_t block) {
  if (m.real_zeros != nullptr) return m.real_zeros[column * m.blocks() + block];
  if (m.zeros == nullptr) return static_cast<float>(1 << (m.bits - 1));
  const int64_t row_bytes = (m.blocks() * m.bits + 7) / 8, bit = block * m.bits;
  return static_cast<float>((m.zeros[column * row_bytes + bit / 8] >> (bit % 8)) & ((1 << m.bits) - 1));
}

void dequantize_blocks(const NBitsMatrix& m, int64_t column, float* y) {
  const int64_t blob = m.block * m.bits / 8, blocks = m.blocks();
  const uint8_t* x = m.data + column * blocks * blob;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t start = block * m.block, count = m.k - start < m.block ? m.k - start : m.block;
    dequantize_any(x + block * blob, m.bits, count, m.scales[column * blocks + block],
                   zero_of(m, column, block), y + start);
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(dequantize_any);
HWY_EXPORT(dequantize_blocks);
}  // namespace

void dequantize_bits(const uint8_t* x, int bits, int64_t count, float scale, float zero, float* y) {
  HWY_DYNAMIC_DISPATCH(dequantize_any)(x, bits, count, scale, zero, y);
}

void dequantize_column(const NBitsMatrix& matrix, int64_t column, float* y) {
  HWY_DYNAMIC_DISPATCH(dequantize_blocks)(matrix, column, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
