#include "plimsoll/value.h"

#include <cstring>

#include "base/checked.h"
#include "runtime/value_impl.h"

namespace plimsoll {

int64_t tensor_bytes(ElementType type, const std::vector<int64_t>& shape) {
  if (element_bits(type) == 0) fail(ErrorCode::kInvalidArgument, "a tensor needs an element type");
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 0) fail(ErrorCode::kInvalidArgument, "shape {}: a dimension is negative", to_string(shape));
    if (__builtin_mul_overflow(count, d, &count) || count > (int64_t{1} << 56))
      fail(ErrorCode::kInvalidArgument, "shape {}: too many elements", to_string(shape));
  }
  return element_bytes(type, count);
}

Value Value::CreateTensor(ElementType type, std::vector<int64_t> shape) {
  auto impl = std::make_shared<Impl>();
  impl->bytes = tensor_bytes(type, shape);
  impl->type = type;
  impl->shape = std::move(shape);
  impl->owned = Mapping(impl->bytes);
  impl->data = impl->owned.data();
  return Value(std::move(impl));
}

Value Value::CreateTensor(ElementType type, std::vector<int64_t> shape, void* data, size_t bytes) {
  const int64_t needed = tensor_bytes(type, shape);
  if (static_cast<int64_t>(bytes) < needed)
    fail(ErrorCode::kInvalidArgument, "shape {} of {} needs {} bytes, found {}", to_string(shape),
         element_type_name(type), needed, bytes);
  if (data == nullptr && needed > 0)
    fail(ErrorCode::kInvalidArgument, "a tensor of {} bytes has no data", needed);
  const auto width = static_cast<uintptr_t>(std::max(1, std::min(element_bits(type), 64) / 8));
  if (reinterpret_cast<uintptr_t>(data) % width != 0)
    fail(ErrorCode::kInvalidArgument, "tensor data must be aligned to {} bytes", width);
  auto impl = std::make_shared<Impl>();
  impl->type = type;
  impl->shape = std::move(shape);
  impl->data = static_cast<std::byte*>(data);
  impl->bytes = needed;
  return Value(std::move(impl));
}

Value Value::CreateStrings(const std::vector<std::string>& strings, std::vector<int64_t> shape) {
  std::vector<StringRef> handles;
  handles.reserve(strings.size());
  for (const std::string& s : strings) handles.push_back({s.data(), s.size()});
  const int64_t bytes = tensor_bytes(ElementType::kString, shape);
  if (bytes != static_cast<int64_t>(handles.size() * sizeof(StringRef)))
    fail(ErrorCode::kInvalidArgument, "shape {}: found {} strings", to_string(shape), strings.size());
  return copy_to_value({reinterpret_cast<std::byte*>(handles.data()), ElementType::kString, false, shape});
}

int64_t value_copy_bytes(const TensorView& view) {
  int64_t total = view.bytes();
  const int64_t count = view.type == ElementType::kString ? view.elements() : 0;
  for (int64_t i = 0; i < count; ++i)
    total = checked_add(total, static_cast<int64_t>(view.as<StringRef>()[i].size));
  return total;
}

Value copy_to_value(const TensorView& view) {
  auto impl = std::make_shared<Value::Impl>();
  impl->type = view.type;
  impl->shape.assign(view.dims.begin(), view.dims.end());
  impl->bytes = view.bytes();
  const int64_t count = view.type == ElementType::kString ? view.elements() : 0;
  impl->owned = Mapping(value_copy_bytes(view));
  impl->data = impl->owned.data();
  if (impl->bytes > 0) std::memcpy(impl->data, view.data, static_cast<size_t>(impl->bytes));
  auto* text = reinterpret_cast<char*>(impl->data) + impl->bytes;
  for (int64_t i = 0; i < count; ++i) {
    StringRef& handle = reinterpret_cast<StringRef*>(impl->data)[i];
    if (handle.size > 0) std::memcpy(text, handle.data, handle.size);
    handle.data = text;
    text += handle.size;
  }
  return Value(std::move(impl));
}

namespace {
const Value::Impl& checked(const std::shared_ptr<Value::Impl>& impl) {
  if (impl == nullptr) fail(ErrorCode::kInvalidArgument, "the value is empty");
  return *impl;
}
}  // namespace

ElementType Value::GetElementType() const {
  return impl_ == nullptr ? ElementType::kUndefined : impl_->type;
}
const std::vector<int64_t>& Value::GetShape() const {
  return checked(impl_).shape;
}
size_t Value::GetElementCount() const {
  return static_cast<size_t>(checked(impl_).view().elements());
}
size_t Value::GetByteCount() const {
  return static_cast<size_t>(checked(impl_).bytes);
}
const void* Value::GetData() const {
  return checked(impl_).data;
}
void* Value::GetMutableData() {
  checked(impl_);
  return impl_->data;
}
std::string_view Value::GetString(size_t index) const {
  const Impl& impl = checked(impl_);
  if (impl.type != ElementType::kString || index >= GetElementCount())
    fail(ErrorCode::kInvalidArgument, "string {} of a tensor of {} {}", index, GetElementCount(),
         element_type_name(impl.type));
  return reinterpret_cast<const StringRef*>(impl.data)[index].view();
}

}  // namespace plimsoll
