#include "tensor/tensor.h"

namespace plimsoll {
namespace {

template <typename T, typename F>
std::string bracketed(std::span<const T> items, F&& text) {
  std::string result = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) result += ", ";
    result += text(items[i]);
  }
  return result + "]";
}

}  // namespace

std::string to_string(std::span<const Dim> dims) {
  return bracketed(dims, [](Dim d) { return d.to_string(); });
}

std::string to_string(std::span<const int64_t> dims) {
  return bracketed(dims, [](int64_t d) { return std::to_string(d); });
}

ElementType tensor_type(const TypeInfo& type) {
  return type.element != nullptr ? tensor_type(*type.element) : type.type;
}

std::string to_string(const TypeInfo& type) {
  const std::string inner = type.element != nullptr ? to_string(*type.element) : "?";
  switch (type.kind) {
    case ValueKind::kSequence:
      return "sequence(" + inner + ")";
    case ValueKind::kOptional:
      return "optional(" + inner + ")";
    case ValueKind::kMap:
      return std::string("map(") + element_type_name(type.key) + ", " + inner + ")";
    case ValueKind::kSparseTensor:
    case ValueKind::kTensor:
      break;
  }
  const std::string text = element_type_name(type.type);
  return type.ranked ? text + to_string(type.dims) : text + "[...]";
}

}  // namespace plimsoll
