#include "tensor/element_type.h"

#include "base/checked.h"
#include "tensor/half_bits.h"

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

Float16::Float16(float value) : bits(float_to_half(value)) {}

Float16::operator float() const {
  return half_to_float(bits);
}

}  // namespace plimsoll
