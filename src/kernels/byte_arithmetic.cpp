#include "kernels/byte_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/byte_arithmetic.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/to_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;

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
#if HWY_TARGET == HWY_AVX3
  return {_mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - count), from)};
#else
  const hn::ScalableTag<uint8_t> d;
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

// As many columns as `d` has lanes; signed bytes are taken plus 128.
template <typename D16>
HWY_INLINE void sum_columns(D16 d, const uint8_t* x, uint8_t flip, int64_t rows, int64_t stride,
                            int32_t* sums) {
  const hn::Rebind<uint8_t, D16> d8;
  constexpr int64_t kMostRows = 256, kLanes = hn::MaxLanes(d);  // sums of so many fit 16 bits
  const auto bits = hn::Set(d8, flip);
  const auto less = static_cast<int32_t>(flip) * static_cast<int32_t>(rows);
  for (int64_t i = 0; i < kLanes; ++i) sums[i] = -less;
  for (int64_t first = 0; first < rows; first += kMostRows) {
    auto even = hn::Zero(d), odd = even;
    const int64_t last = std::min(rows, first + kMostRows);
    const auto row = [&](int64_t r)
                         HWY_ATTR { return hn::PromoteTo(d, hn::Xor(hn::LoadU(d8, x + r * stride), bits)); };
    int64_t r = first;
    for (; r + 2 <= last; r += 2) even = hn::Add(even, row(r)), odd = hn::Add(odd, row(r + 1));
    if (r < last) even = hn::Add(even, row(r));
    HWY_ALIGN uint16_t some[kLanes];
    hn::Store(hn::Add(even, odd), d, some);
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += some[i];
  }
}

void sum_rows(const uint8_t* x, bool is_signed, int64_t rows, int64_t stride, int64_t count, int32_t* sums) {
  const hn::ScalableTag<uint16_t> d;
  const hn::FixedTag<uint16_t, 8> few;
  constexpr int64_t kLanes = hn::MaxLanes(d), kFew = 8;
  const uint8_t flip = is_signed ? 0x80 : 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum_columns(d, x + i, flip, rows, stride, sums + i);
  for (; i + kFew <= count; i += kFew) sum_columns(few, x + i, flip, rows, stride, sums + i);
  if (i == count) return;
  for (int64_t k = i; k < count; ++k) sums[k] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = i; k < count; ++k) {
      const uint8_t byte = x[r * stride + k];
      sums[k] += is_signed ? static_cast<int8_t>(byte) : byte;
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(add_bytes);
HWY_EXPORT(multiply_bytes);
HWY_EXPORT(sum_rows);
}  // namespace

void add_8(const ByteOperands& x, int64_t count, float a_scale, float b_scale, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(add_bytes)(x, count, a_scale, b_scale, y);
}

void multiply_8(const ByteOperands& x, int64_t count, float scale, uint8_t* y) {
  HWY_DYNAMIC_DISPATCH(multiply_bytes)(x, count, scale, y);
}

void sum_rows_8(const uint8_t* x, bool is_signed, int64_t rows, int64_t stride, int64_t count,
                int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(sum_rows)(x, is_signed, rows, stride, count, sums);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
