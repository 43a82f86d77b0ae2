#include "tensor/small_types.h"

#include <algorithm>
#include <limits>

namespace plimsoll {
namespace {

struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  double most;
  bool has_infinity;  // as IEEE has it
  bool only_one_nan;  // FNUZ: the pattern of negative zero is NaN, and there is no negative zero
};

constexpr SmallFloat kE4M3FN = {4, 3, 7, 448, false, false};
constexpr SmallFloat kE4M3FNUZ = {4, 3, 8, 240, false, true};
constexpr SmallFloat kE5M2 = {5, 2, 15, 57344, true, false};
constexpr SmallFloat kE5M2FNUZ = {5, 2, 16, 57344, false, true};
constexpr SmallFloat kE2M1 = {2, 1, 1, 6, false, false};

const SmallFloat& form_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E4M3FN:
      return kE4M3FN;
    case ElementType::kFloat8E4M3FNUZ:
      return kE4M3FNUZ;
    case ElementType::kFloat8E5M2:
      return kE5M2;
    case ElementType::kFloat8E5M2FNUZ:
      return kE5M2FNUZ;
    default:
      return kE2M1;
  }
}

constexpr unsigned kE8M0Nan = 0xff, kE8M0Most = 0xfe;

// A power of two without a sign; what is negative counts as its magnitude.
unsigned encode_e8m0(double value, const SmallFloatRules& rules) {
  if (std::isnan(value)) return kE8M0Nan;
  const double magnitude = std::fabs(value);
  if (magnitude < 0x1p-127) return rules.saturate ? 0 : kE8M0Nan;
  if (std::isinf(magnitude)) return rules.saturate ? kE8M0Most : kE8M0Nan;
  int exponent = 0;
  const double mantissa = 2 * std::frexp(magnitude, &exponent);  // in [1, 2)
  --exponent;
  if (rules.rounding == E8M0Rounding::kUp && mantissa > 1) ++exponent;
  if (rules.rounding == E8M0Rounding::kNearest && mantissa >= 1.5) ++exponent;
  if (exponent > 127) return rules.saturate ? kE8M0Most : kE8M0Nan;
  return static_cast<unsigned>(exponent + 127);
}

unsigned nan_bits(ElementType type, bool negative) {
  if (type == ElementType::kFloat4E2M1) return 0x7;  // it has none
  if (form_of(type).only_one_nan) return 0x80;
  return negative ? 0xff : 0x7f;
}

unsigned too_large(ElementType type, bool negative, bool infinite, const SmallFloatRules& rules) {
  const SmallFloat& form = form_of(type);
  const unsigned sign = negative ? 1u << (form.exponent_bits + form.mantissa_bits) : 0;
  const bool saturate = rules.saturate && !(infinite && form.only_one_nan && !rules.saturate_infinity);
  if (type == ElementType::kFloat4E2M1) return sign | 0x7;
  if (!saturate) return form.has_infinity ? sign | 0x7c : nan_bits(type, negative);
  if (form.has_infinity) return sign | 0x7b;
  return sign | (form.only_one_nan ? 0x7f : 0x7e);
}

}  // namespace

bool is_small_float(ElementType type) {
  return (type >= ElementType::kFloat8E4M3FN && type <= ElementType::kFloat8E5M2FNUZ) ||
         type == ElementType::kFloat4E2M1 || type == ElementType::kFloat8E8M0;
}

bool is_small_integer(ElementType type) {
  return type == ElementType::kInt4 || type == ElementType::kUint4 || type == ElementType::kInt2 ||
         type == ElementType::kUint2;
}

float decode_small_float(ElementType type, unsigned bits) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (type == ElementType::kFloat8E8M0)
    return bits == kE8M0Nan ? kNan : std::ldexp(1.0f, static_cast<int>(bits) - 127);
  const SmallFloat& form = form_of(type);
  const int all_ones = (1 << form.exponent_bits) - 1;
  const int mantissa = static_cast<int>(bits) & ((1 << form.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> form.mantissa_bits) & all_ones;
  const float sign = ((bits >> (form.mantissa_bits + form.exponent_bits)) & 1) != 0 ? -1.0f : 1.0f;
  if (form.only_one_nan && bits == 0x80) return kNan;
  if (type == ElementType::kFloat8E4M3FN && (bits & 0x7f) == 0x7f) return std::copysign(kNan, sign);
  if (form.has_infinity && exponent == all_ones)
    return std::copysign(mantissa != 0 ? kNan : std::numeric_limits<float>::infinity(), sign);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), 1 - form.bias - form.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << form.mantissa_bits)),
                           exponent - form.bias - form.mantissa_bits);
}

unsigned encode_small_float(ElementType type, double value, const SmallFloatRules& rules) {
  if (type == ElementType::kFloat8E8M0) return encode_e8m0(value, rules);
  const SmallFloat& form = form_of(type);
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return nan_bits(type, negative);
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return too_large(type, negative, true, rules);
  const int least = 1 - form.bias;
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  // Whole steps between neighbours at this exponent; up to the next power of two.
  const double steps = std::rint(std::ldexp(magnitude, form.mantissa_bits - exponent));
  if (std::ldexp(steps, exponent - form.mantissa_bits) > form.most)
    return too_large(type, negative, false, rules);
  const int one = 1 << form.mantissa_bits;
  const auto bits = static_cast<unsigned>(((exponent + form.bias) * one) + static_cast<int>(steps) - one);
  if (form.only_one_nan && bits == 0) return 0;
  return bits | (negative ? 1u << (form.exponent_bits + form.mantissa_bits) : 0);
}

void decode_table(ElementType type, float* table) {
  const unsigned count = 1u << element_bits(type);
  for (unsigned bits = 0; bits < count; ++bits) table[bits] = decode_small_float(type, bits);
}

int32_t integer_at(ElementType type, const std::byte* data, int64_t i) {
  const auto read = [&](auto value) -> int32_t {
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  };
  switch (type) {
    case ElementType::kInt8:
      return read(int8_t{});
    case ElementType::kUint8:
      return read(uint8_t{});
    case ElementType::kInt16:
      return read(int16_t{});
    case ElementType::kUint16:
      return read(uint16_t{});
    case ElementType::kInt32:
      return read(int32_t{});
    case ElementType::kInt4:
    case ElementType::kInt2:
      return sign_extended(packed_bits(data, element_bits(type), i), element_bits(type));
    default:
      return static_cast<int32_t>(packed_bits(data, element_bits(type), i));
  }
}

void fill_packed(std::byte* data, int bits, int64_t count, unsigned value) {
  unsigned byte = 0;
  for (int shift = 0; shift < 8; shift += bits) byte |= (value & ((1u << bits) - 1)) << shift;
  if (count > 0) std::memset(data, static_cast<int>(byte), static_cast<size_t>((count * bits + 7) / 8));
  clear_padding_bits(data, bits, count);
}

void clear_padding_bits(std::byte* data, int bits, int64_t count) {
  const int64_t per_byte = 8 / bits;
  if (const int64_t used = count % per_byte; used != 0)
    data[count / per_byte] &= static_cast<std::byte>((1u << (used * bits)) - 1);
}

}  // namespace plimsoll
