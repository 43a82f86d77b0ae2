#include "plimsoll/value.h"

#include <cstring>

#include "base/checked.h"
#include "memory/bump_arena.h"
#include "onnx/tensor_file.h"
#include "runtime/value_impl.h"

namespace plimsoll {

namespace {

const Value::Impl& checked(const std::shared_ptr<Value::Impl>& impl) {
  if (impl == nullptr) fail(ErrorCode::kInvalidArgument, "the value is empty");
  return *impl;
}

const Value::Impl& tensor(const std::shared_ptr<Value::Impl>& impl) {
  if (checked(impl).kind != ValueKind::kTensor)
    fail(ErrorCode::kInvalidArgument, "expected a tensor, found {}", Value(impl).GetTypeInfo());
  return *impl;
}

}  // namespace

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

Value make_tensor(const std::shared_ptr<BlockArena>& arena, ElementType type, std::vector<int64_t> shape) {
  auto impl = std::make_shared<Value::Impl>();
  impl->bytes = tensor_bytes(type, shape);
  impl->type = type;
  impl->shape = std::move(shape);
  impl->block = ArenaBlock(arena, impl->bytes);
  impl->data = impl->block.data();
  return Value(std::move(impl));
}

Value Value::CreateTensor(const Allocator& allocator, ElementType type, std::vector<int64_t> shape) {
  if (type == ElementType::kString)
    fail(ErrorCode::kInvalidArgument, "a tensor of strings: expected its strings, found an allocator");
  if (allocator.impl()->arena == nullptr) return CreateTensor(type, std::move(shape));
  return make_tensor(allocator.impl()->arena, type, std::move(shape));
}

MemoryInfo Value::GetTensorMemoryInfo() const {
  tensor(impl_);
  return {"Cpu", AllocatorType::kDevice};
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

Value Value::FromTensorProto(std::string_view bytes, std::string* name) {
  Budget unlimited("tensor", 0);
  BumpArena arena(unlimited);
  std::string_view found;
  const TensorData tensor = read_tensor(std::as_bytes(std::span(bytes)), arena, &found);
  if (name != nullptr) *name = found;
  return copy_to_value(tensor.view());
}

namespace {

// Strings are handles; their characters follow them.
int64_t text_bytes(const TensorView& view) {
  int64_t total = 0;
  const int64_t count = view.type == ElementType::kString ? view.elements() : 0;
  for (int64_t i = 0; i < count; ++i)
    total = checked_add(total, static_cast<int64_t>(view.as<StringRef>()[i].size));
  return total;
}

std::shared_ptr<Value::Impl> copy_tensor(const TensorView& view, std::byte* to) {
  auto impl = std::make_shared<Value::Impl>();
  impl->type = view.type;
  impl->shape.assign(view.dims.begin(), view.dims.end());
  impl->bytes = view.bytes();
  impl->data = to;
  if (impl->bytes > 0) std::memcpy(to, view.data, static_cast<size_t>(impl->bytes));
  auto* text = reinterpret_cast<char*>(to) + impl->bytes;
  const int64_t count = view.type == ElementType::kString ? view.elements() : 0;
  for (int64_t i = 0; i < count; ++i) {
    StringRef& handle = reinterpret_cast<StringRef*>(to)[i];
    if (handle.size > 0) std::memcpy(text, handle.data, handle.size);
    handle.data = text;
    text += handle.size;
  }
  return impl;
}

// What follows it in the mapping of a list is aligned.
int64_t item_bytes(const TensorView& view) {
  return round_up(value_copy_bytes(view), 64);
}

// Tensors of a list, one after the other in one mapping.
class ListCopy {
 public:
  explicit ListCopy(int64_t bytes)
      : memory_(std::make_shared<const Mapping>(bytes)), next_(memory_->data()) {}

  Value copy(const TensorView& view) {
    if (view.is_list()) {
      auto list = std::make_shared<Value::Impl>();
      list->kind = view.kind;
      list->type = view.type;
      for (const TensorView& item : view.items()) list->elements.push_back(copy(item));
      return Value(std::move(list));
    }
    auto tensor = copy_tensor(view, next_);
    tensor->shared = memory_;
    next_ += item_bytes(view);
    return Value(std::move(tensor));
  }

 private:
  std::shared_ptr<const Mapping> memory_;
  std::byte* next_;
};

}  // namespace

int64_t value_copy_bytes(const TensorView& view) {
  if (view.is_none()) return 0;
  if (!view.is_list()) return checked_add(view.bytes(), text_bytes(view));
  int64_t total = 0;
  for (const TensorView& item : view.items()) total = checked_add(total, item_bytes(item));
  return total;
}

Value copy_to_value(const TensorView& view) {
  if (view.is_none()) return Value::CreateNone(view.type);
  if (view.is_list()) return ListCopy(value_copy_bytes(view)).copy(view);
  Mapping memory(value_copy_bytes(view));
  auto impl = copy_tensor(view, memory.data());
  impl->owned = std::move(memory);
  return Value(std::move(impl));
}

int64_t value_bytes(const Value& value) {
  if (!value) return 0;
  int64_t total = value.impl()->bytes;
  for (const Value& element : value.impl()->elements) total = checked_add(total, value_bytes(element));
  return total;
}

namespace {

ElementType key_type(const Value& map) {
  return map.GetValue(0).GetElementType();
}

bool same_element(const Value& a, const Value& b) {
  return a.GetKind() == b.GetKind() && a.GetElementType() == b.GetElementType() &&
         (!a.IsMap() || key_type(a) == key_type(b));
}

}  // namespace

Value Value::CreateSequence(const std::vector<Value>& values, ElementType type) {
  auto impl = std::make_shared<Impl>();
  impl->kind = ValueKind::kSequence;
  impl->type = values.empty() ? type : values[0].GetElementType();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].IsTensor() && !values[i].IsMap())
      fail(ErrorCode::kInvalidArgument, "element {} of a sequence: expected a tensor or a map, found {}", i,
           values[i].GetTypeInfo());
    if (!same_element(values[0], values[i]))
      fail(ErrorCode::kInvalidArgument, "elements 0 and {} of a sequence: expected one type, found {} and {}",
           i, values[0].GetTypeInfo(), values[i].GetTypeInfo());
  }
  if (impl->type == ElementType::kUndefined || (type != ElementType::kUndefined && impl->type != type))
    fail(ErrorCode::kInvalidArgument, "a sequence of {} was to have elements of type {}",
         element_type_name(impl->type), element_type_name(type));
  impl->elements = values;
  return Value(std::move(impl));
}

Value Value::CreateMap(const Value& keys, const Value& values) {
  for (const Value* part : {&keys, &values}) {
    if (!part->IsTensor() || part->GetShape().size() != 1)
      fail(ErrorCode::kInvalidArgument, "the {} of a map: expected a tensor of one dimension, found {}",
           part == &keys ? "keys" : "values", part->GetTypeInfo());
  }
  const ElementType key = keys.GetElementType();
  if (key != ElementType::kInt64 && key != ElementType::kString)
    fail(ErrorCode::kInvalidArgument, "the keys of a map: expected int64 or string, found {}",
         element_type_name(key));
  if (keys.GetShape() != values.GetShape())
    fail(ErrorCode::kInvalidArgument, "a map: {} keys for {} values", keys.GetElementCount(),
         values.GetElementCount());
  auto impl = std::make_shared<Impl>();
  impl->kind = ValueKind::kMap;
  impl->type = values.GetElementType();
  impl->elements = {keys, values};
  return Value(std::move(impl));
}

Value Value::CreateNone(ElementType type) {
  auto impl = std::make_shared<Impl>();
  impl->kind = ValueKind::kOptional;
  impl->type = type;
  return Value(std::move(impl));
}

ValueKind Value::GetKind() const {
  return checked(impl_).kind;
}
bool Value::IsTensor() const {
  return impl_ != nullptr && impl_->kind == ValueKind::kTensor;
}
bool Value::IsSequence() const {
  return impl_ != nullptr && impl_->kind == ValueKind::kSequence;
}
bool Value::IsMap() const {
  return impl_ != nullptr && impl_->kind == ValueKind::kMap;
}
bool Value::HasValue() const {
  return impl_ != nullptr && impl_->kind != ValueKind::kOptional;
}

std::string Value::GetTypeInfo() const {
  if (impl_ == nullptr) return "nothing";
  const char* type = element_type_name(impl_->type);
  switch (impl_->kind) {
    case ValueKind::kSequence: {
      const bool of_maps = !impl_->elements.empty() && impl_->elements[0].IsMap();
      const std::string element =
          of_maps ? fmt::format("map({}, {})", element_type_name(key_type(impl_->elements[0])), type) : type;
      return fmt::format("sequence({}) of {}", element, impl_->elements.size());
    }
    case ValueKind::kMap:
      return fmt::format("map({}, {}) of {}", element_type_name(key_type(*this)), type,
                         GetValue(0).GetElementCount());
    case ValueKind::kOptional:
      return fmt::format("optional({}) without a value", type);
    default:
      return fmt::format("{}{}", type, to_string(impl_->shape));
  }
}

size_t Value::GetCount() const {
  const Impl& impl = checked(impl_);
  if (impl.kind != ValueKind::kSequence && impl.kind != ValueKind::kMap)
    fail(ErrorCode::kInvalidArgument, "expected a sequence or a map, found {}", GetTypeInfo());
  return impl.elements.size();
}
Value Value::GetValue(size_t index) const {
  if (index >= GetCount())
    fail(ErrorCode::kInvalidArgument, "element {} of {}: there are {}", index, GetTypeInfo(), GetCount());
  return impl_->elements[index];
}

ElementType Value::GetElementType() const {
  return impl_ == nullptr ? ElementType::kUndefined : impl_->type;
}
const std::vector<int64_t>& Value::GetShape() const {
  return tensor(impl_).shape;
}
size_t Value::GetElementCount() const {
  return static_cast<size_t>(tensor(impl_).view().elements());
}
size_t Value::GetByteCount() const {
  return static_cast<size_t>(tensor(impl_).bytes);
}
const void* Value::GetData() const {
  return tensor(impl_).data;
}
void* Value::GetMutableData() {
  tensor(impl_);
  return impl_->data;
}
std::string_view Value::GetString(size_t index) const {
  const Impl& impl = tensor(impl_);
  if (impl.type != ElementType::kString || index >= GetElementCount())
    fail(ErrorCode::kInvalidArgument, "string {} of a tensor of {} {}", index, GetElementCount(),
         element_type_name(impl.type));
  return reinterpret_cast<const StringRef*>(impl.data)[index].view();
}

const char* value_kind_name(ValueKind kind) noexcept {
  switch (kind) {
    case ValueKind::kTensor:
      return "tensor";
    case ValueKind::kSequence:
      return "sequence";
    case ValueKind::kOptional:
      return "optional";
    case ValueKind::kMap:
      return "map";
    case ValueKind::kSparseTensor:
      break;
  }
  return "sparse tensor";
}

}  // namespace plimsoll
