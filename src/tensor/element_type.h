// ONNX element types: sizes, names, and the C++ types behind them.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/fail.h"
#include "plimsoll/value.h"

namespace plimsoll {

// Bits of one element; 2 or 4 for the packed types, 128 for a string's handle.
int element_bits(ElementType type);
// Bytes of `count` elements; packed types round up to a whole byte. Throws on overflow.
int64_t element_bytes(ElementType type, int64_t count);
bool is_float(ElementType type);
bool is_integer(ElementType type);
bool is_known_type(int onnx_code);

// A string element: a handle to characters that live in the model file, in the caller's value or in
// a run's string memory. Trivially copyable, so that data movement treats it like any 16 bytes.
struct StringRef {
  const char* data = nullptr;
  uint64_t size = 0;
  std::string_view view() const { return {data, size}; }
  friend bool operator==(StringRef a, StringRef b) { return a.view() == b.view(); }
};

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

// Round to nearest even, NaN kept.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    bits = std::isnan(value) ? static_cast<uint16_t>((u >> 16) | 0x40)
                             : static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <typename T>
struct TypeTag {
  using type = T;
};

template <typename T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::kFloat;
  if constexpr (std::is_same_v<T, double>) return ElementType::kDouble;
  if constexpr (std::is_same_v<T, Float16>) return ElementType::kFloat16;
  if constexpr (std::is_same_v<T, BFloat16>) return ElementType::kBFloat16;
  if constexpr (std::is_same_v<T, int8_t>) return ElementType::kInt8;
  if constexpr (std::is_same_v<T, int16_t>) return ElementType::kInt16;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::kInt64;
  if constexpr (std::is_same_v<T, uint8_t>) return ElementType::kUint8;
  if constexpr (std::is_same_v<T, uint16_t>) return ElementType::kUint16;
  if constexpr (std::is_same_v<T, uint32_t>) return ElementType::kUint32;
  if constexpr (std::is_same_v<T, uint64_t>) return ElementType::kUint64;
  if constexpr (std::is_same_v<T, bool>) return ElementType::kBool;
  if constexpr (std::is_same_v<T, StringRef>) return ElementType::kString;
  return ElementType::kUndefined;
}

// Calls f(TypeTag<T>{}) for the C++ type of `type`. The sets are what operators usually take; a type
// outside the set is an assertion, because `infer` has rejected it already.
template <typename F>
decltype(auto) visit_float(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kDouble:
      return f(TypeTag<double>{});
    case ElementType::kFloat16:
      return f(TypeTag<Float16>{});
    case ElementType::kBFloat16:
      return f(TypeTag<BFloat16>{});
    default:
      return f(TypeTag<float>{});
  }
}

template <typename F>
decltype(auto) visit_integer(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kInt8:
      return f(TypeTag<int8_t>{});
    case ElementType::kInt16:
      return f(TypeTag<int16_t>{});
    case ElementType::kInt32:
      return f(TypeTag<int32_t>{});
    case ElementType::kUint8:
      return f(TypeTag<uint8_t>{});
    case ElementType::kUint16:
      return f(TypeTag<uint16_t>{});
    case ElementType::kUint32:
      return f(TypeTag<uint32_t>{});
    case ElementType::kUint64:
      return f(TypeTag<uint64_t>{});
    default:
      return f(TypeTag<int64_t>{});
  }
}

template <typename F>
decltype(auto) visit_numeric(ElementType type, F&& f) {
  return is_float(type) ? visit_float(type, f) : visit_integer(type, f);
}

// For data movement: calls f with an unsigned type of the element's width (1, 2, 4, 8 or 16 bytes).
struct Bytes16 {
  uint64_t lo, hi;
};
template <typename F>
decltype(auto) visit_width(ElementType type, F&& f) {
  switch (element_bits(type)) {
    case 16:
      return f(TypeTag<uint16_t>{});
    case 32:
      return f(TypeTag<uint32_t>{});
    case 64:
      return f(TypeTag<uint64_t>{});
    case 128:
      return f(TypeTag<Bytes16>{});
    default:
      return f(TypeTag<uint8_t>{});
  }
}

}  // namespace plimsoll
