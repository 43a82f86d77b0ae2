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

// f(a less its zero point, b likewise), as floats, rounded to bytes.
template <typename T, typename F>
void combine_run(const ByteOperands& x, int64_t count, F f, uint8_t* y) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<T, D> d8;
  constexpr int64_t kMost = hn::MaxLanes(D());
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t least = std::is_signed_v<T> ? -128 : 0;
  const auto low = hn::Set(d, static_cast<float>(least - x.zero));
  const auto high = hn::Set(d, static_cast<float>(least + 255 - x.zero));
  const auto a_zero = hn::Set(di, x.a_zero), b_zero = hn::Set(di, x.b_zero), zero = hn::Set(di, x.zero);
  const auto load = [&](const uint8_t* from, auto less) {
    return hn::ConvertTo(d,
                         hn::Sub(hn::PromoteTo(di, hn::LoadU(d8, reinterpret_cast<const T*>(from))), less));
  };
  const auto store = [&](const uint8_t* a, const uint8_t* b, uint8_t* to) {
    const auto value = hn::Min(hn::Max(f(load(a, a_zero), load(b, b_zero)), low), high);
    store_bytes(hn::Add(nearest_within(value), zero), to);
  };
  uint8_t one_a[kMost], one_b[kMost];
  if (x.a_stride == 0) std::memset(one_a, x.a[0], sizeof one_a);
  if (x.b_stride == 0) std::memset(one_b, x.b[0], sizeof one_b);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    store(x.a_stride == 0 ? one_a : x.a + i, x.b_stride == 0 ? one_b : x.b + i, y + i);
  if (i == count) return;
  uint8_t rest[kMost];
  const auto some = static_cast<size_t>(count - i);
  if (x.a_stride != 0) std::memcpy(one_a, x.a + i, some);
  if (x.b_stride != 0) std::memcpy(one_b, x.b + i, some);
  store(one_a, one_b, rest);
  std::memcpy(y + i, rest, some);
}

template <typename F>
void combine_bytes(const ByteOperands& x, int64_t count, F f, uint8_t* y) {
  x.is_signed ? combine_run<int8_t>(x, count, f, y) : combine_run<uint8_t>(x, count, f, y);
}

void add_bytes(const ByteOperands& x, int64_t count, float a_scale, float b_scale, uint8_t* y) {
  const D d;
  const auto by_a = hn::Set(d, a_scale), by_b = hn::Set(d, b_scale);
  combine_bytes(
      x, count, [=](auto a, auto b) { return hn::MulAdd(a, by_a, hn::Mul(b, by_b)); }, y);
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Products of a vector of bytes at a time. Bytes are unpacked twice and come back into their order as they
// are packed; a product of two bytes less their zero points fits 17 bits, and packing keeps within bounds.
class BytesMultiplier {
  using D8 = hn::ScalableTag<uint8_t>;
  using D16 = hn::RepartitionToWide<D8>;
  using S16 = hn::RebindToSigned<D16>;
  using S32 = hn::RepartitionToWide<S16>;
  using V8 = hn::Vec<D8>;
  using V16 = hn::Vec<S16>;

 public:
  static constexpr int64_t kLanes = hn::MaxLanes(D8());

  BytesMultiplier(const ByteOperands& x, float scale)
      : is_signed_(x.is_signed),
        flip_(hn::Set(D8(), x.is_signed ? 0x80 : 0)),
        a_zero_(zero(x.a_zero)),
        b_zero_(zero(x.b_zero)),
        y_zero_(hn::Set(S16(), static_cast<int16_t>(x.zero))),
        by_(hn::Set(D(), scale)) {}

  HWY_INLINE V8 operator()(V8 a, V8 b) const {
    const auto low = half(lower(a, a_zero_), lower(b, b_zero_)),
               high = half(upper(a, a_zero_), upper(b, b_zero_));
#if HWY_TARGET == HWY_AVX3
    return V8{is_signed_ ? _mm512_packs_epi16(low.raw, high.raw) : _mm512_packus_epi16(low.raw, high.raw)};
#else
    return V8{is_signed_ ? _mm256_packs_epi16(low.raw, high.raw) : _mm256_packus_epi16(low.raw, high.raw)};
#endif
  }

 private:
  // Signed bytes are taken plus 128.
  V16 zero(int32_t point) const {
    return hn::Set(S16(), static_cast<int16_t>(point + (is_signed_ ? 128 : 0)));
  }
  HWY_INLINE V16 lower(V8 bytes, V16 zero) const {
    const auto wide = hn::InterleaveLower(D8(), hn::Xor(bytes, flip_), hn::Zero(D8()));
    return hn::Sub(hn::BitCast(S16(), wide), zero);
  }
  HWY_INLINE V16 upper(V8 bytes, V16 zero) const {
    const auto wide = hn::InterleaveUpper(D8(), hn::Xor(bytes, flip_), hn::Zero(D8()));
    return hn::Sub(hn::BitCast(S16(), wide), zero);
  }
  HWY_INLINE V16 half(V16 a, V16 b) const {
    const auto low = hn::Mul(a, b), high = hn::MulHigh(a, b);
    const auto rounded = [&](auto products) HWY_ATTR {
      return nearest_within(hn::Mul(hn::ConvertTo(D(), hn::BitCast(S32(), products)), by_));
    };
    const auto first = rounded(hn::InterleaveLower(S16(), low, high)),
               second = rounded(hn::InterleaveUpper(S16(), low, high));
    return hn::SaturatedAdd(hn::ReorderDemote2To(S16(), first, second), y_zero_);
  }

  const bool is_signed_;
  const V8 flip_;
  const V16 a_zero_, b_zero_, y_zero_;
  const hn::Vec<D> by_;
};

HWY_INLINE hn::Vec<hn::ScalableTag<uint8_t>> load_first(const uint8_t* from, int64_t count) {
  const hn::ScalableTag<uint8_t> d;
#if HWY_TARGET == HWY_AVX3
  return {_mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - count), from)};
#else
  HWY_ALIGN uint8_t some[hn::MaxLanes(d)] = {};
  std::memcpy(some, from, static_cast<size_t>(count));
  return hn::Load(d, some);
#endif
}

HWY_INLINE void store_first_bytes(hn::Vec<hn::ScalableTag<uint8_t>> bytes, int64_t count, uint8_t* to) {
#if HWY_TARGET == HWY_AVX3
  _mm512_mask_storeu_epi8(to, ~uint64_t{0} >> (64 - count), bytes.raw);
#else
  const hn::ScalableTag<uint8_t> d;
  HWY_ALIGN uint8_t some[hn::MaxLanes(d)];
  hn::Store(bytes, d, some);
  std::memcpy(to, some, static_cast<size_t>(count));
#endif
}

void multiply_vectors(const ByteOperands& x, int64_t count, float scale, uint8_t* y) {
  const hn::ScalableTag<uint8_t> d;
  const BytesMultiplier multiply(x, scale);
  constexpr int64_t kLanes = BytesMultiplier::kLanes;
  const auto walk = [&](const auto& whole_a, const auto& whole_b, const auto& rest_a, const auto& rest_b)
                        HWY_ATTR {
                          int64_t i = 0;
                          for (; i + kLanes <= count; i += kLanes)
                            hn::StoreU(multiply(whole_a(i), whole_b(i)), d, y + i);
                          if (i < count) store_first_bytes(multiply(rest_a(i), rest_b(i)), count - i, y + i);
                        };
  const auto same = [&](const uint8_t* from) {
    return [value = hn::Set(d, *from)](int64_t) HWY_ATTR { return value; };
  };
  const auto whole = [&](const uint8_t* from) {
    return [=](int64_t i) HWY_ATTR { return hn::LoadU(d, from + i); };
  };
  const auto rest = [&](const uint8_t* from) {
    return [=](int64_t i) HWY_ATTR { return load_first(from + i, count - i); };
  };
  if (x.a_stride == 0) return walk(same(x.a), whole(x.b), same(x.a), rest(x.b));
  if (x.b_stride == 0) return walk(whole(x.a), same(x.b), rest(x.a), same(x.b));
  walk(whole(x.a), whole(x.b), rest(x.a), rest(x.b));
}
#endif

void multiply_bytes(const ByteOperands& x, int64_t count, float scale, uint8_t* y) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  constexpr float kMost = 30000;  // times 255 * 255 that is within 32 bits
  if (std::abs(scale) < kMost && (x.a_stride != 0 || x.b_stride != 0))
    return multiply_vectors(x, count, scale, y);
#endif
  const D d;
  const auto by = hn::Set(d, scale);
  combine_bytes(
      x, count, [=](auto a, auto b) { return hn::Mul(hn::Mul(a, b), by); }, y);
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
HWY_EXPORT(add_bytes);
HWY_EXPORT(multiply_bytes);
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

void add_8(const ByteOperands& x, int64_t count, float a_scale, float b_scale, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(add_bytes)(x, count, a_scale, b_scale, y);
}

void multiply_8(const ByteOperands& x, int64_t count, float scale, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(multiply_bytes)(x, count, scale, y);
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
