// Tensors as kernels and inference see them: views and facts. Nothing here owns memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensor/dim.h"
#include "tensor/element_type.h"

namespace plimsoll {

// Row-major elements at an address. `data` is null for an optional input that is absent.
struct TensorView {
  std::byte* data = nullptr;
  ElementType type = ElementType::kUndefined;
  bool packed = false;  // the bytes are what the operator's own `pack` wrote; dims are the raw tensor's
  std::span<const int64_t> dims;

  explicit operator bool() const { return type != ElementType::kUndefined; }
  size_t rank() const { return dims.size(); }
  int64_t elements() const {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    return count;
  }
  int64_t bytes() const { return element_bytes(type, elements()); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

enum class ValueKind : uint8_t { kTensor, kSequence, kOptional, kMap, kSparseTensor };

// The static type of an edge. `element` is what a sequence, optional or map holds.
struct TypeInfo {
  ValueKind kind = ValueKind::kTensor;
  ElementType type = ElementType::kUndefined;
  ElementType key = ElementType::kUndefined;
  bool ranked = false;  // false: even the number of dimensions is unknown
  std::span<const Dim> dims;
  const TypeInfo* element = nullptr;

  size_t rank() const { return dims.size(); }
};

// Everything known about a value before it is computed.
struct Facts {
  TypeInfo type;
  // The elements of a small integer tensor, where shape arithmetic could tell them.
  std::optional<std::span<const Dim>> values;
  // The data itself: an initializer, a folded result, or, while a run infers a shape that depends on
  // data, the input at hand. May be unaligned. Null if unknown.
  const TensorView* constant = nullptr;

  // All dimensions are constants.
  bool is_concrete() const {
    if (!type.ranked || type.kind != ValueKind::kTensor) return false;
    for (Dim d : type.dims) {
      if (!d.is_constant()) return false;
    }
    return true;
  }
};

std::string to_string(const TypeInfo& type);
std::string to_string(std::span<const Dim> dims);
std::string to_string(std::span<const int64_t> dims);

}  // namespace plimsoll
