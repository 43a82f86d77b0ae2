#include "tensor/element_type.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"

namespace plimsoll {

int element_bits(ElementType type) {
  switch (type) {
    case ElementType::kInt2:
    case ElementType::kUint2:
      return 2;
    case ElementType::kInt4:
    case ElementType::kUint4:
    case ElementType::kFloat4E2M1:
      return 4;
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
    case ElementType::kFloat8E4M3FN:
    case ElementType::kFloat8E4M3FNUZ:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2FNUZ:
    case ElementType::kFloat8E8M0:
      return 8;
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
    case ElementType::kComplex128:
    case ElementType::kString:
      return 128;
    case ElementType::kUndefined:
      break;
  }
  return 0;
}

int64_t element_bytes(ElementType type, int64_t count) {
  return ceil_div(checked_mul(element_bits(type), count), 8);
}

bool is_float(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble || type == ElementType::kFloat16 ||
         type == ElementType::kBFloat16;
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint8:
    case ElementType::kUint16:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return true;
    default:
      return false;
  }
}

bool is_known_type(int onnx_code) {
  return onnx_code >= 1 && onnx_code <= static_cast<int>(ElementType::kInt2);
}

const char* element_type_name(ElementType type) noexcept {
  static constexpr const char* kNames[] = {
      "undefined",      "float",    "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "double",   "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

// Without branches, which data decides.
Float16::Float16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000;
  const uint32_t magnitude = u & 0x7fffffff;
  const uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  // Subnormal: the float adder rounds to nearest even.
  const uint32_t least = std::min<uint32_t>(magnitude, 0x38800000);
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(least) + 0.5f) - 0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? small : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;  // rounds to infinity
  result = magnitude > 0x7f800000 ? 0x7e00 : result;   // NaN stays NaN
  bits = static_cast<uint16_t>(sign | result);
}

// Exponent and fraction, moved to where a float has them, are the number times 2^-112.
Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t shifted = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  return std::bit_cast<float>((shifted >= 0x0f800000 ? shifted | 0x7f800000 : finite) | sign);
}

}  // namespace plimsoll
