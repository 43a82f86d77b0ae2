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
//
// Whatever the kind of a value, in a run it is such a view:
//   kTensor    its elements are at `data`.
//   kSequence  `dims` is its length; items() are its elements, views themselves; `type` is that of the
//   tensors in it. kMap       two items, the keys (int64 or string) and the values: tensors of one dimension
//   and equal length, where
//              equal positions belong together. `type` is that of the values.
//   kOptional  an optional that holds nothing, without data. One that holds something is what it holds.
// What is in a list never changes once the list is handed on, so that values share their items
// (graph/value_run.h).
struct TensorView {
  std::byte* data = nullptr;
  ElementType type = ElementType::kUndefined;
  bool packed = false;  // the bytes are what the operator's own `pack` wrote; dims are the raw tensor's
  std::span<const int64_t> dims;
  ValueKind kind = ValueKind::kTensor;
  bool counted = false;  // `data` is memory of a run that counts its owners (runtime/dynamic_memory.h)

  explicit operator bool() const { return type != ElementType::kUndefined; }
  bool is_none() const { return kind == ValueKind::kOptional; }
  bool is_list() const { return kind == ValueKind::kSequence || kind == ValueKind::kMap; }
  std::span<TensorView> items() const {
    return {reinterpret_cast<TensorView*>(data), static_cast<size_t>(dims[0])};
  }
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

// The static type of an edge. `element` is what a sequence, optional or map holds: dims in it are those of
// all elements, and a size that depends on data may be another one in each.
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
  // The number of elements of a sequence; 0 or 1 of an optional.
  std::optional<Dim> length;

  // All dimensions are constants.
  bool is_concrete() const {
    if (!type.ranked || type.kind != ValueKind::kTensor) return false;
    for (Dim d : type.dims) {
      if (!d.is_constant()) return false;
    }
    return true;
  }
};

// Of a tensor; of other kinds the type of the tensors in them.
ElementType tensor_type(const TypeInfo& type);

std::string to_string(const TypeInfo& type);
std::string to_string(std::span<const Dim> dims);
std::string to_string(std::span<const int64_t> dims);

}  // namespace plimsoll
