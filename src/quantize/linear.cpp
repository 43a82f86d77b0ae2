#include "quantize/linear.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "tensor/small_types.h"

namespace plimsoll {

IntegerRange integer_range(ElementType type, bool reduced, bool symmetric) {
  switch (type) {
    case ElementType::kUint8:
      return {0, reduced ? 127 : 255};
    case ElementType::kInt8:
      if (reduced) return {-64, 64};
      return {symmetric ? -127 : -128, 127};
    case ElementType::kUint16:
      return {0, reduced ? 32767 : 65535};
    case ElementType::kInt16:
      if (reduced) return {-16384, 16384};
      return {symmetric ? -32767 : -32768, 32767};
    case ElementType::kUint4:
      return {0, reduced ? 7 : 15};
    case ElementType::kInt4:
      return {reduced ? -4 : -8, reduced ? 3 : 7};
    default:
      fail(ErrorCode::kInvalidArgument, "quantization: expected a type of 4, 8 or 16 bits, found {}",
           element_type_name(type));
  }
}

namespace {

// The least scale that the real type holds with all its digits.
double least_scale(ElementType real) {
  return real == ElementType::kFloat16 ? 0x1p-14 : static_cast<double>(FLT_MIN);
}

float rounded_to(double value, ElementType real) {
  const auto single = static_cast<float>(value);
  return real == ElementType::kFloat16 ? static_cast<float>(Float16(single)) : single;
}

RealRange with_zero(RealRange range, float least_range) {
  range.low = std::min(range.low, 0.0f);
  range.high = std::max(range.high, 0.0f);
  if (least_range > 0) range.high = std::max(range.high, range.low + least_range);
  return range;
}

}  // namespace

LinearParameters linear_parameters(RealRange range, IntegerRange integers, bool symmetric, ElementType real,
                                   float least_range) {
  range = with_zero(range, least_range);
  if (symmetric) {
    range.high = std::max(-range.low, range.high);
    range.low = -range.high;
  }
  // The difference is taken in the reals' own type, the quotient in double.
  const float width = range.high - range.low;
  const double scale = static_cast<double>(width) / (static_cast<double>(integers.high) - integers.low);
  if (scale < least_scale(real)) return {};
  const double zero = symmetric ? (static_cast<double>(integers.low) + integers.high) / 2
                                : integers.low - static_cast<double>(range.low) / scale;
  return {rounded_to(scale, real), static_cast<int32_t>(std::nearbyint(zero))};
}

LinearParameters snapped_parameters(RealRange range, IntegerRange integers, float least_range) {
  range = with_zero(range, least_range);
  const double low = range.low, high = range.high;
  const int32_t middle = (integers.low + integers.high + 1) / 2;
  if (high <= low) return {1.0f / static_cast<float>(integers.high - integers.low), integers.low};
  if (range.low >= 0) return {static_cast<float>(high / (integers.high - integers.low)), integers.low};
  const double scale = std::max(-low / (middle - integers.low), high / (integers.high - middle));
  return {static_cast<float>(scale), middle};
}

namespace {

// Half to even without a call: what is added pushes the fraction out of a float of this size.
inline float round_half_even(float x) {
  constexpr float kPush = 0x1.8p23f;
  return (x + kPush) - kPush;
}

template <typename T>
void quantize_run(std::span<const float> x, const LinearParameters& p, IntegerRange limits, T* out) {
  const auto zero = static_cast<float>(p.zero_point);
  // One more than what fits on either side, so that rounding stays exact and holding comes after it.
  const float least = static_cast<float>(limits.low) - zero - 1,
              most = static_cast<float>(limits.high) - zero + 1;
  const auto low = static_cast<float>(limits.low), high = static_cast<float>(limits.high);
  for (size_t i = 0; i < x.size(); ++i) {
    const float rounded = round_half_even(std::min(std::max(x[i] / p.scale, least), most));
    out[i] = static_cast<T>(static_cast<int32_t>(std::min(std::max(rounded + zero, low), high)));
  }
}

}  // namespace

void quantize_linear(std::span<const float> x, const LinearParameters& p, ElementType type, std::byte* out,
                     int64_t first) {
  if (type == ElementType::kFloat8E4M3FN) {
    for (size_t i = 0; i < x.size(); ++i)
      out[first + static_cast<int64_t>(i)] =
          static_cast<std::byte>(encode_small_float(type, x[i] / p.scale, {}));
    return;
  }
  const IntegerRange limits = integer_range(type, false, false);
  const auto at = [&]<typename T>(TypeTag<T>) { return reinterpret_cast<T*>(out) + first; };
  switch (type) {
    case ElementType::kUint8:
      return quantize_run(x, p, limits, at(TypeTag<uint8_t>{}));
    case ElementType::kInt8:
      return quantize_run(x, p, limits, at(TypeTag<int8_t>{}));
    case ElementType::kUint16:
      return quantize_run(x, p, limits, at(TypeTag<uint16_t>{}));
    case ElementType::kInt16:
      return quantize_run(x, p, limits, at(TypeTag<int16_t>{}));
    default:
      for (size_t i = 0; i < x.size(); ++i) {
        int8_t one = 0;
        quantize_run(x.subspan(i, 1), p, limits, &one);
        set_packed_bits(out, 4, first + static_cast<int64_t>(i), static_cast<uint8_t>(one));
      }
  }
}

float float8_scale(float deviation) {
  float table[256];
  decode_table(ElementType::kFloat8E4M3FN, table);
  double squares = 0;
  int count = 0;
  for (float value : table) {
    if (!std::isfinite(value)) continue;
    squares += static_cast<double>(value) * value;
    ++count;
  }
  return static_cast<float>(deviation / std::sqrt(squares / count));
}

}  // namespace plimsoll
