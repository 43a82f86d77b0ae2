// ValueRun: one run of a node that takes or makes something other than tensors, as its operator sees it.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace plimsoll {

struct Node;

// Memory for the characters of strings that an operator makes (Cast to string). Charged to `dynamic`.
class TextMemory {
 public:
  virtual ~TextMemory() = default;
  virtual char* allocate(size_t bytes) = 0;
};

// Values are as tensor/tensor.h says (TensorView). Those that are made here live in `dynamic` and count their
// owners. Whoever allocates or shares a value owns it, and hands it on, to a list or an output, or frees it;
// after an Error nothing need be freed. A value that is handed on does not change any more: to change a
// sequence is to make another list of the same items.
class ValueRun {
 public:
  virtual ~ValueRun() = default;
  virtual const Node& node() const = 0;
  virtual TensorView input(size_t i) const = 0;  // converts to false where it is absent
  virtual bool has_output(size_t i) const = 0;

  // Memory whose size only the data tells, until free() or the end of the whole run.
  virtual TensorView allocate(ElementType type, std::span<const int64_t> dims) = 0;
  // A sequence or a map; put what is owned into its items().
  virtual TensorView allocate_list(ValueKind kind, ElementType type, int64_t count) = 0;
  // One more owner of a value; a copy if its memory is not counted (an input, a planned tensor).
  virtual TensorView share(const TensorView& value) = 0;
  virtual void free(TensorView& view) noexcept = 0;
  virtual TextMemory& text() = 0;

  // Output i has its place, because its shape was known.
  virtual bool is_planned(size_t i) const = 0;
  // Memory for output i, a tensor of this shape: its place, or taken now.
  virtual TensorView make_output(size_t i, ElementType type, std::span<const int64_t> dims) = 0;
  // Output i becomes the value, which is handed over.
  virtual void give_output(size_t i, TensorView value) = 0;
  // Output i becomes the value, which stays the owner's.
  void set_output(size_t i, const TensorView& value);

  virtual int threads() const = 0;
  virtual void check_stop() const = 0;
};

// An optional without a value, of tensors of this type.
inline TensorView none_of(ElementType type) {
  TensorView none;
  none.type = type;
  none.kind = ValueKind::kOptional;
  return none;
}

}  // namespace plimsoll
