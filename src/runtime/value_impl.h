// What is behind a Value.
#pragma once

#include "memory/mapping.h"
#include "plimsoll/value.h"
#include "runtime/allocator_impl.h"
#include "tensor/tensor.h"

namespace plimsoll {

struct Value::Impl {
  ValueKind kind = ValueKind::kTensor;
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> shape;  // what follows is a tensor's
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Mapping owned;                          // empty for a view of the caller's memory
  ArenaBlock block;                       // instead, if it is from an arena
  std::shared_ptr<const Mapping> shared;  // that the elements of a list have together
  std::vector<Value> elements;            // of a sequence; the keys and the values of a map

  TensorView view() const { return {data, type, false, shape}; }
};

// The bytes of a tensor; throws kInvalidArgument on a negative dimension or overflow.
int64_t tensor_bytes(ElementType type, const std::vector<int64_t>& shape);
// What an owned copy of a value takes, the characters of strings included.
int64_t value_copy_bytes(const TensorView& view);
// A tensor in a block of its own.
Value make_tensor(const std::shared_ptr<BlockArena>& arena, ElementType type, std::vector<int64_t> shape);
// An owned copy of a value of any kind, with the characters of strings.
Value copy_to_value(const TensorView& view);
// What the tensors in a value take.
int64_t value_bytes(const Value& value);

}  // namespace plimsoll
