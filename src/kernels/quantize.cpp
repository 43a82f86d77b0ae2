#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/storage-inl.h"
#include "kernels/to_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;

FloatRange range_of(const float* x, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto least0 = hn::Zero(d), most0 = hn::Zero(d), least1 = least0, most1 = most0;
  int64_t i = 0;
  // The accumulator comes second: the x86 instructions give the second operand where the first is NaN.
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto v0 = hn::LoadU(d, x + i), v1 = hn::LoadU(d, x + i + lanes);
    least0 = hn::Min(v0, least0), most0 = hn::Max(v0, most0);
    least1 = hn::Min(v1, least1), most1 = hn::Max(v1, most1);
  }
  FloatRange range{hn::GetLane(hn::MinOfLanes(d, hn::Min(least0, least1))),
                   hn::GetLane(hn::MaxOfLanes(d, hn::Max(most0, most1)))};
  for (; i < count; ++i) {
    if (x[i] < range.least) range.least = x[i];
    if (x[i] > range.most) range.most = x[i];
  }
  return range;
}

struct Quantizer {
  D d;
  hn::RebindToSigned<D> di;
  hn::Vec<D> scale, low, high;
  hn::Vec<hn::RebindToSigned<D>> zero;

  Quantizer(float by, int32_t zero_point, int32_t least)
      : scale(hn::Set(d, by)),
        low(hn::Set(d, static_cast<float>(least - zero_point))),
        high(hn::Set(d, static_cast<float>(least + 255 - zero_point))),
        zero(hn::Set(di, zero_point)) {}
  // Clamped before it is rounded: the same, and never outside 32 bits.
  template <typename T>
  HWY_INLINE void store(const T* x, uint8_t* y) const {
    auto quotient = hn::Div(load_all(d, x), scale);
    if constexpr (kIsHalf<T>) quotient = widened(d, narrowed(d, quotient, T()), T());
    store_value(quotient, y);
  }
  HWY_INLINE void store_value(hn::Vec<D> value, uint8_t* y) const {
    store_bytes(hn::Add(nearest_within(hn::Min(hn::Max(value, low), high)), zero), y);
  }
};

template <typename T>
void quantize_run(const T* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y) {
  const Quantizer quantizer(scale, zero_point, least);
  constexpr int64_t kMost = hn::MaxLanes(D());
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) quantizer.store(x + i, y + i);
  if (i == count) return;
  HWY_ALIGN T rest[kMost] = {};
  HWY_ALIGN uint8_t bytes[kMost];
  std::memcpy(rest, x + i, static_cast<size_t>(count - i) * sizeof(T));
  quantizer.store(rest, bytes);
  std::memcpy(y + i, bytes, static_cast<size_t>(count - i));
}

void quantize_f32(const float* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y) {
  quantize_run(x, count, scale, zero_point, least, y);
}
void quantize_f16(const Float16* x, int64_t count, float scale, int32_t zero_point, int32_t least,
                  uint8_t* y) {
  quantize_run(x, count, scale, zero_point, least, y);
}
void quantize_bf16(const BFloat16* x, int64_t count, float scale, int32_t zero_point, int32_t least,
                   uint8_t* y) {
  quantize_run(x, count, scale, zero_point, least, y);
}

template <typename T, typename Y>
void dequantize_run(const T* x, int64_t count, float scale, int32_t zero_point, Y* y) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<T, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale);
  const auto zero = hn::Set(di, zero_point);
  int64_t i = 0;
  const auto product = [&](const T* from) {
    const auto whole = hn::Sub(hn::PromoteTo(di, hn::LoadU(d8, from)), zero);
    return hn::Mul(hn::ConvertTo(d, whole), by);
  };
  for (; i + lanes <= count; i += lanes) store_all(d, product(x + i), y + i);
  if (i == count) return;
  T rest[hn::MaxLanes(D())] = {};
  const auto some = static_cast<size_t>(count - i);
  std::memcpy(rest, x + i, some);
  store_first(d, product(rest), y + i, some);
}

template <typename Y>
void dequantize_bytes(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                      Y* y) {
  if (is_signed) return dequantize_run(reinterpret_cast<const int8_t*>(x), count, scale, zero_point, y);
  dequantize_run(x, count, scale, zero_point, y);
}
void dequantize_f32(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                    float* y) {
  dequantize_bytes(x, is_signed, count, scale, zero_point, y);
}
void dequantize_f16(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                    Float16* y) {
  dequantize_bytes(x, is_signed, count, scale, zero_point, y);
}
void dequantize_bf16(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                     BFloat16* y) {
  dequantize_bytes(x, is_signed, count, scale, zero_point, y);
}

HWY_INLINE uint8_t largest_byte(const uint8_t* x, int64_t count, uint8_t flip) {
  const hn::Full128<uint8_t> d;
  const auto bits = hn::Set(d, flip);
  auto most = hn::Zero(d);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) most = hn::Max(most, hn::Xor(hn::LoadU(d, x + i), bits));
  most = hn::Max(most, hn::ShiftRightBytes<8>(d, most));
  most = hn::Max(most, hn::ShiftRightBytes<4>(d, most));
  most = hn::Max(most, hn::ShiftRightBytes<2>(d, most));
  most = hn::Max(most, hn::ShiftRightBytes<1>(d, most));
  uint8_t largest = hn::GetLane(most);
  for (; i < count; ++i) largest = std::max(largest, static_cast<uint8_t>(x[i] ^ flip));
  return largest;
}

// One of sixteen floats, by the lowest four bits of an index.
template <typename I>
HWY_INLINE hn::Vec<D> one_of_16(const float* floats, I index) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D>{_mm512_permutexvar_ps(index.raw, _mm512_loadu_ps(floats))};
#elif HWY_TARGET == HWY_AVX2
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(floats), index.raw),
               high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(floats + 8), index.raw);
  return hn::Vec<D>{_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index.raw, 28)))};
#else
  return hn::GatherIndex(D(), floats, hn::And(index, hn::Set(hn::RebindToSigned<D>(), 15)));
#endif
}

void soften_bytes(const SoftmaxTable& table, bool is_signed, const uint8_t* x, int64_t count, float scale,
                  int32_t zero_point, uint8_t* y) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // As unsigned numbers signed ones are in the same order with their highest bit turned.
  const uint8_t flip = is_signed ? 0x80 : 0;
  const uint8_t largest = largest_byte(x, count, flip);
  const auto most = hn::Set(di, largest);
  const auto bits = hn::Set(di, flip);
  const auto values_at = [&](int64_t i) HWY_ATTR {
    const auto byte = hn::Xor(hn::PromoteTo(di, hn::LoadU(d8, x + i)), bits);
    const auto less = hn::Sub(most, byte);
    return hn::Mul(one_of_16(table.coarse, hn::ShiftRight<4>(less)), one_of_16(table.fine, less));
  };
  const auto value_at = [&](int64_t i) { return table.values[largest - (x[i] ^ flip)]; };
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) sum = hn::Add(sum, values_at(i));
  float all = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) all += value_at(i);
  const Quantizer quantizer(scale, zero_point, is_signed ? -128 : 0);
  const auto by = hn::Set(d, 1 / (all * scale));
  for (i = 0; i + lanes <= count; i += lanes) quantizer.store_value(hn::Mul(values_at(i), by), y + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
  HWY_ALIGN uint8_t bytes[hn::MaxLanes(D())];
  for (int64_t k = i; k < count; ++k) rest[k - i] = value_at(k);
  quantizer.store_value(hn::Mul(hn::Load(d, rest), by), bytes);
  std::memcpy(y + i, bytes, static_cast<size_t>(count - i));
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(range_of);
HWY_EXPORT(quantize_f32);
HWY_EXPORT(quantize_f16);
HWY_EXPORT(quantize_bf16);
HWY_EXPORT(dequantize_f32);
HWY_EXPORT(dequantize_f16);
HWY_EXPORT(dequantize_bf16);
HWY_EXPORT(soften_bytes);

constexpr int64_t kTask = 1 << 15;

template <typename F>
void in_tasks(int64_t count, int threads, F&& f) {
  parallel_for(threads, (count + kTask - 1) / kTask,
               [&](int64_t task) { f(task * kTask, std::min(kTask, count - task * kTask)); });
}
}  // namespace

FloatRange range_with_zero(const float* x, int64_t count, int threads) {
  constexpr int64_t kMostParts = 64;
  const int64_t parts = std::clamp<int64_t>(count / kTask, 1, std::min<int64_t>(threads, kMostParts));
  FloatRange ranges[kMostParts];
  parallel_for(threads, parts, [&](int64_t part) {
    const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    ranges[part] = HWY_DYNAMIC_DISPATCH(range_of)(x + begin, end - begin);
  });
  FloatRange all = ranges[0];
  for (int64_t i = 1; i < parts; ++i)
    all = {std::min(all.least, ranges[i].least), std::max(all.most, ranges[i].most)};
  return all;
}

void quantize_8(const float* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(quantize_f32)(x + at, n, scale, zero_point, least, y + at);
  });
}
void quantize_8(const Float16* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(quantize_f16)(x + at, n, scale, zero_point, least, y + at);
  });
}
void quantize_8(const BFloat16* x, int64_t count, float scale, int32_t zero_point, int32_t least, uint8_t* y,
                int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(quantize_bf16)(x + at, n, scale, zero_point, least, y + at);
  });
}

void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point, float* y,
                  int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(dequantize_f32)(x + at, is_signed, n, scale, zero_point, y + at);
  });
}
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                  Float16* y, int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(dequantize_f16)(x + at, is_signed, n, scale, zero_point, y + at);
  });
}
void dequantize_8(const uint8_t* x, bool is_signed, int64_t count, float scale, int32_t zero_point,
                  BFloat16* y, int threads) {
  in_tasks(count, threads, [&](int64_t at, int64_t n) {
    HWY_DYNAMIC_DISPATCH(dequantize_bf16)(x + at, is_signed, n, scale, zero_point, y + at);
  });
}

SoftmaxTable::SoftmaxTable(float scale) {
  const auto power = [&](int i) {
    return static_cast<float>(std::exp(-static_cast<double>(scale) * static_cast<double>(i)));
  };
  for (int i = 0; i < 16; ++i) coarse[i] = power(16 * i), fine[i] = power(i);
  for (int i = 0; i < 256; ++i) values[i] = coarse[i / 16] * fine[i % 16];
}

void soften_8(const SoftmaxTable& table, bool is_signed, const uint8_t* x, int64_t count, float scale,
              int32_t zero_point, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(soften_bytes)(table, is_signed, x, count, scale, zero_point, y);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
