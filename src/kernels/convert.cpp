#include "kernels/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// SSE4 has no instruction for float16, and Highway's stand-in knows neither infinity nor NaN.
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE2
constexpr bool kHasHalf = false;
#else
constexpr bool kHasHalf = true;
#endif

void half_to_float(const Float16* x, float* y, int64_t count) {
  int64_t i = 0;
  if constexpr (kHasHalf) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto* from = reinterpret_cast<const hwy::float16_t*>(x);
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, from + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = static_cast<float>(x[i]);
}

void float_to_half(const float* x, Float16* y, int64_t count) {
  int64_t i = 0;
  if constexpr (kHasHalf) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    auto* to = reinterpret_cast<hwy::float16_t*>(y);
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::DemoteTo(d16, hn::LoadU(d, x + i)), d16, to + i);
  }
  for (; i < count; ++i) y[i] = Float16(x[i]);
}

void brain_to_float(const BFloat16* x, float* y, int64_t count) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const uint16_t*>(x);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(d16, from + i)));
    hn::StoreU(hn::BitCast(hn::ScalableTag<float>(), wide), hn::ScalableTag<float>(), y + i);
  }
  for (; i < count; ++i) y[i] = static_cast<float>(x[i]);
}

void float_to_brain(const float* x, BFloat16* y, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<uint32_t> du;
  const hn::Rebind<uint16_t, decltype(du)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* to = reinterpret_cast<uint16_t*>(y);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto u = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(du, 0x7fff))));
    const auto nan = hn::Or(hn::ShiftRight<16>(u), hn::Set(du, 0x40));
    const auto bits = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
    hn::StoreU(hn::TruncateTo(d16, bits), d16, to + i);
  }
  for (; i < count; ++i) y[i] = BFloat16(x[i]);
}

template <typename T>
void integer_to_float(const T* x, float* y, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<T, decltype(d)> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(hn::ConvertTo(d, hn::LoadU(d32, x + i)), d, y + i);
    } else {
      hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(dt, x + i))), d, y + i);
    }
  }
  for (; i < count; ++i) y[i] = static_cast<float>(x[i]);
}

// Every element is within 32 bits, and none is NaN.
bool all_in_range(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, 2147483520.0f);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    if (!hn::AllTrue(d, hn::Le(hn::Abs(hn::LoadU(d, x + i)), limit))) return false;
  }
  for (; i < count; ++i) {
    if (!(x[i] <= 2147483520.0f && x[i] >= -2147483520.0f)) return false;
  }
  return true;
}

template <typename T>
bool float_to_integer(const float* x, T* y, int64_t count) {
  if (!all_in_range(x, count)) return false;
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint32_t, decltype(d)> du32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto whole = hn::ConvertTo(d32, hn::LoadU(d, x + i));
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(whole, d32, y + i);
    } else {
      hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du32, whole)), d8, reinterpret_cast<uint8_t*>(y) + i);
    }
  }
  for (; i < count; ++i) y[i] = static_cast<T>(static_cast<int32_t>(x[i]));
  return true;
}

void widen(const int32_t* x, int64_t* y, int64_t count) {
  const hn::ScalableTag<int64_t> d;
  const hn::Rebind<int32_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, x + i)), d, y + i);
  for (; i < count; ++i) y[i] = x[i];
}

void narrow(const int64_t* x, int32_t* y, int64_t count) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Rebind<uint32_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const uint64_t*>(x);
  auto* to = reinterpret_cast<uint32_t*>(y);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::TruncateTo(half, hn::LoadU(d, from + i)), half, to + i);
  for (; i < count; ++i) y[i] = static_cast<int32_t>(x[i]);
}

// 1 where a byte is not 0.
void bool_to_float(const uint8_t* x, float* y, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto truth = hn::Min(hn::LoadU(d8, x + i), hn::Set(d8, 1));
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(d32, truth)), d, y + i);
  }
  for (; i < count; ++i) y[i] = x[i] != 0 ? 1.0f : 0.0f;
}

bool from_float(const float* x, ElementType to, void* y, int64_t count) {
  switch (to) {
    case ElementType::kFloat16:
      return float_to_half(x, static_cast<Float16*>(y), count), true;
    case ElementType::kBFloat16:
      return float_to_brain(x, static_cast<BFloat16*>(y), count), true;
    case ElementType::kInt32:
      return float_to_integer(x, static_cast<int32_t*>(y), count);
    case ElementType::kInt8:
      return float_to_integer(x, static_cast<int8_t*>(y), count);
    case ElementType::kUint8:
      return float_to_integer(x, static_cast<uint8_t*>(y), count);
    default:
      return false;
  }
}

bool to_float(ElementType from, const void* x, float* y, int64_t count) {
  switch (from) {
    case ElementType::kFloat16:
      return half_to_float(static_cast<const Float16*>(x), y, count), true;
    case ElementType::kBFloat16:
      return brain_to_float(static_cast<const BFloat16*>(x), y, count), true;
    case ElementType::kInt32:
      return integer_to_float(static_cast<const int32_t*>(x), y, count), true;
    case ElementType::kInt8:
      return integer_to_float(static_cast<const int8_t*>(x), y, count), true;
    case ElementType::kUint8:
      return integer_to_float(static_cast<const uint8_t*>(x), y, count), true;
    case ElementType::kBool:
      return bool_to_float(static_cast<const uint8_t*>(x), y, count), true;
    default:
      return false;
  }
}

bool convert_any(ElementType from, const void* x, ElementType to, void* y, int64_t count) {
  if (from == ElementType::kFloat) return from_float(static_cast<const float*>(x), to, y, count);
  if (to == ElementType::kFloat) return to_float(from, x, static_cast<float*>(y), count);
  if (from == ElementType::kInt32 && to == ElementType::kInt64)
    return widen(static_cast<const int32_t*>(x), static_cast<int64_t*>(y), count), true;
  if (from == ElementType::kInt64 && to == ElementType::kInt32)
    return narrow(static_cast<const int64_t*>(x), static_cast<int32_t*>(y), count), true;
  return false;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(convert_any);
}  // namespace

bool convert(ElementType from, const void* x, ElementType to, void* y, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(convert_any)(from, x, to, y, count);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
