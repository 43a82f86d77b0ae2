#include "elements.h"

#include <cmath>
#include <cstring>

namespace plimsoll::cli {
namespace {

template <typename T>
T load(const Value& value, size_t index) {
  T element;
  std::memcpy(&element, static_cast<const char*>(value.GetData()) + index * sizeof(T), sizeof(T));
  return element;
}

struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  // as IEEE has it; otherwise `nan` is the one pattern that is no number
  int nan;
};

double decode(const SmallFloat& form, unsigned bits) {
  const int all_ones = (1 << form.exponent_bits) - 1;
  const int mantissa = static_cast<int>(bits) & ((1 << form.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> form.mantissa_bits) & all_ones;
  const bool negative = ((bits >> (form.mantissa_bits + form.exponent_bits)) & 1) != 0;
  const double sign = negative ? -1 : 1;
  const bool is_nan = form.has_infinity  ? exponent == all_ones && mantissa != 0
                      : form.nan == 0x7f ? (bits & 0x7f) == 0x7f
                                         : static_cast<int>(bits) == form.nan;
  if (is_nan) return std::nan("");
  if (form.has_infinity && exponent == all_ones) return sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - form.bias - form.mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits);
}

constexpr SmallFloat kHalf = {5, 10, 15, true, 0};
constexpr SmallFloat kE4M3FN = {4, 3, 7, false, 0x7f};
constexpr SmallFloat kE4M3FNUZ = {4, 3, 8, false, 0x80};
constexpr SmallFloat kE5M2 = {5, 2, 15, true, 0};
constexpr SmallFloat kE5M2FNUZ = {5, 2, 16, false, 0x80};
constexpr SmallFloat kE2M1 = {2, 1, 1, false, -1};

double decode_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float result;
  std::memcpy(&result, &wide, sizeof result);
  return static_cast<double>(result);
}

// One of the elements that share a byte, the first in its lowest bits.
unsigned packed_bits(const Value& value, size_t index, unsigned width) {
  const size_t per_byte = 8 / width;
  const auto byte = load<uint8_t>(value, index / per_byte);
  return (byte >> (index % per_byte * width)) & ((1u << width) - 1);
}
int64_t packed_signed(const Value& value, size_t index, unsigned width) {
  const unsigned sign = 1u << (width - 1);
  return static_cast<int64_t>(packed_bits(value, index, width) ^ sign) - static_cast<int64_t>(sign);
}

}  // namespace

int element_bits(ElementType type) {
  switch (type) {
    case ElementType::kUndefined:
      return 0;
    case ElementType::kUint2:
    case ElementType::kInt2:
      return 2;
    case ElementType::kUint4:
    case ElementType::kInt4:
    case ElementType::kFloat4E2M1:
      return 4;
    case ElementType::kUint16:
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 16;
    case ElementType::kFloat:
    case ElementType::kInt32:
    case ElementType::kUint32:
      return 32;
    case ElementType::kDouble:
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kComplex64:
      return 64;
    case ElementType::kString:
    case ElementType::kComplex128:
      return 128;
    default:
      return 8;
  }
}

bool is_float(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble || type == ElementType::kFloat16 ||
         (type >= ElementType::kBFloat16 && type <= ElementType::kFloat8E5M2FNUZ) ||
         type == ElementType::kFloat4E2M1 || type == ElementType::kFloat8E8M0;
}

std::optional<int64_t> count_elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && __builtin_mul_overflow(count, size, &count))) return std::nullopt;
    empty = empty || size == 0;
  }
  if (count > (int64_t{1} << 56)) return std::nullopt;
  return empty ? 0 : count;
}

std::optional<int64_t> count_bytes(ElementType type, const std::vector<int64_t>& shape) {
  const auto count = count_elements(shape);
  if (!count) return std::nullopt;
  const int bits = element_bits(type);
  return bits < 8 ? (*count * bits + 7) / 8 : *count * (bits / 8);
}

double real_element(const Value& value, size_t index) {
  switch (value.GetElementType()) {
    case ElementType::kFloat:
      return static_cast<double>(load<float>(value, index));
    case ElementType::kDouble:
      return load<double>(value, index);
    case ElementType::kFloat16:
      return decode(kHalf, load<uint16_t>(value, index));
    case ElementType::kBFloat16:
      return decode_bfloat16(load<uint16_t>(value, index));
    case ElementType::kFloat8E4M3FN:
      return decode(kE4M3FN, load<uint8_t>(value, index));
    case ElementType::kFloat8E4M3FNUZ:
      return decode(kE4M3FNUZ, load<uint8_t>(value, index));
    case ElementType::kFloat8E5M2:
      return decode(kE5M2, load<uint8_t>(value, index));
    case ElementType::kFloat8E5M2FNUZ:
      return decode(kE5M2FNUZ, load<uint8_t>(value, index));
    case ElementType::kFloat4E2M1:
      return decode(kE2M1, packed_bits(value, index, 4));
    case ElementType::kFloat8E8M0: {
      const auto exponent = load<uint8_t>(value, index);
      return exponent == 0xff ? std::nan("") : std::ldexp(1.0, exponent - 127);
    }
    case ElementType::kUint64:
      return static_cast<double>(load<uint64_t>(value, index));
    default:
      return static_cast<double>(integer_element(value, index));
  }
}

int64_t integer_element(const Value& value, size_t index) {
  switch (value.GetElementType()) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return load<uint8_t>(value, index);
    case ElementType::kInt8:
      return load<int8_t>(value, index);
    case ElementType::kUint16:
      return load<uint16_t>(value, index);
    case ElementType::kInt16:
      return load<int16_t>(value, index);
    case ElementType::kInt32:
      return load<int32_t>(value, index);
    case ElementType::kUint32:
      return load<uint32_t>(value, index);
    case ElementType::kInt64:
    case ElementType::kUint64:
      return load<int64_t>(value, index);
    case ElementType::kUint4:
      return packed_bits(value, index, 4);
    case ElementType::kInt4:
      return packed_signed(value, index, 4);
    case ElementType::kUint2:
      return packed_bits(value, index, 2);
    case ElementType::kInt2:
      return packed_signed(value, index, 2);
    default:
      return 0;
  }
}

Json json_element(const Value& value, size_t index) {
  switch (value.GetElementType()) {
    case ElementType::kString:
      return std::string(value.GetString(index));
    case ElementType::kBool:
      return integer_element(value, index) != 0;
    case ElementType::kFloat:
      // Nine digits identify a float; more would show the conversion.
      return std::isfinite(load<float>(value, index)) ? Json(load<float>(value, index)) : nullptr;
    case ElementType::kComplex64:
      return {load<float>(value, 2 * index), load<float>(value, 2 * index + 1)};
    case ElementType::kComplex128:
      return {load<double>(value, 2 * index), load<double>(value, 2 * index + 1)};
    case ElementType::kUint64:
      return load<uint64_t>(value, index);
    default:
      if (is_float(value.GetElementType())) return real_element(value, index);
      return integer_element(value, index);
  }
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace plimsoll::cli
