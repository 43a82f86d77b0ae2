// Value: a tensor, a sequence, a map or an optional that goes into a run or comes out of one.
//
// A tensor either owns its bytes, in a mapping that goes back to the operating system when the last
// copy of the handle is destroyed, or it is a view of the caller's memory, which must then outlive
// it. What a run returns as a sequence or a map has one mapping for all that is in it. Handles are cheap to
// copy and share the bytes. Distinct Values may be used from distinct threads; one Value must not be written
// by one thread while another uses it. Only the Create functions allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plimsoll {

class Allocator;
class MemoryInfo;
class TensorTypeAndShapeInfo;  // plimsoll/cxx_api.h

// The numbers are ONNX's TensorProto.DataType.
enum class ElementType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};
const char* element_type_name(ElementType type) noexcept;

enum class ValueKind : uint8_t { kTensor, kSequence, kOptional, kMap, kSparseTensor };
const char* value_kind_name(ValueKind kind) noexcept;

class Value {
 public:
  // An empty handle: no value at all.
  Value() = default;
  explicit Value(std::nullptr_t) {}

  // Owned, zero-filled. Throws kInvalidArgument on a negative dimension, kOutOfMemory.
  static Value CreateTensor(ElementType type, std::vector<int64_t> shape);
  // A view of memory the caller keeps. `bytes` must be at least what type and shape need.
  static Value CreateTensor(ElementType type, std::vector<int64_t> shape, void* data, size_t bytes);
  template <typename T>
  static Value CreateTensor(T* data, size_t count, std::vector<int64_t> shape);
  // Owned, from the allocator, with whatever was there before. Strings are refused (kInvalidArgument).
  static Value CreateTensor(const Allocator& allocator, ElementType type, std::vector<int64_t> shape);
  // ONNX Runtime's signatures, with plimsoll/cxx_api.h.
  template <typename T>
  static Value CreateTensor(const MemoryInfo& info, T* data, size_t count, const int64_t* shape, size_t rank);
  template <typename Type>
  requires(std::is_enum_v<Type>) static Value CreateTensor(const MemoryInfo& info, void* data, size_t bytes,
                                                           const int64_t* shape, size_t rank, Type type);
  template <typename T>
  static Value CreateTensor(const Allocator& allocator, const int64_t* shape, size_t rank);
  template <typename Type>
  requires(std::is_enum_v<Type>) static Value
      CreateTensor(const Allocator& allocator, const int64_t* shape, size_t rank, Type type);
  // Owned strings.
  static Value CreateStrings(const std::vector<std::string>& strings, std::vector<int64_t> shape);
  // Owned, from a serialized TensorProto, such as the files of ONNX's test data. `name`, if not null, is set
  // to the tensor's name. Throws kInvalidModel, kNotImplemented for data in another file.
  static Value FromTensorProto(std::string_view bytes, std::string* name = nullptr);

  // Shares what the values hold. Throws kInvalidArgument if they are neither all tensors of one element type
  // nor all maps of one type. Only of an empty sequence must `type` be told.
  static Value CreateSequence(const std::vector<Value>& values, ElementType type = ElementType::kUndefined);
  // Keys (int64 or string) and values are tensors of one dimension and equal length.
  static Value CreateMap(const Value& keys, const Value& values);
  // An optional that holds nothing. One that holds something is the tensor or sequence itself.
  static Value CreateNone(ElementType type = ElementType::kUndefined);

  explicit operator bool() const { return impl_ != nullptr; }
  // What it is; kOptional only of an optional that holds nothing.
  ValueKind GetKind() const;
  bool IsTensor() const;
  bool IsSequence() const;
  bool IsMap() const;
  bool HasValue() const;  // false of an empty handle and of an optional that holds nothing
  // "float[2, 3]", "sequence(float) of 4", "map(int64, float) of 3", "optional(float) without a value"
  std::string GetTypeInfo() const;

  // The elements of a sequence; of a map two, its keys and its values. Throws of others.
  size_t GetCount() const;
  // Element `index` of a sequence; of a map its keys (0) or values (1). Throws kInvalidArgument.
  Value GetValue(size_t index) const;

  // Of a tensor; of a sequence the type of its tensors, of a map that of its values.
  ElementType GetElementType() const;
  // What follows is of tensors only, and throws kInvalidArgument otherwise.
  const std::vector<int64_t>& GetShape() const;
  size_t GetElementCount() const;
  size_t GetByteCount() const;  // string tensors: of the handles, without the characters
  const void* GetData() const;
  void* GetMutableData();
  template <typename T>
  const T* GetTensorData() const {
    return static_cast<const T*>(GetData());
  }
  template <typename T>
  T* GetTensorMutableData() {
    return static_cast<T*>(GetMutableData());
  }
  std::string_view GetString(size_t index) const;
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const;  // with plimsoll/cxx_api.h
  MemoryInfo GetTensorMemoryInfo() const;

  // The implementation; defined in src/runtime, for Plimsoll's own use.
  struct Impl;
  explicit Value(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

namespace detail {
template <typename T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::kFloat;
};
template <>
struct ElementTypeOf<double> {
  static constexpr ElementType value = ElementType::kDouble;
};
template <>
struct ElementTypeOf<int8_t> {
  static constexpr ElementType value = ElementType::kInt8;
};
template <>
struct ElementTypeOf<int16_t> {
  static constexpr ElementType value = ElementType::kInt16;
};
template <>
struct ElementTypeOf<int32_t> {
  static constexpr ElementType value = ElementType::kInt32;
};
template <>
struct ElementTypeOf<int64_t> {
  static constexpr ElementType value = ElementType::kInt64;
};
template <>
struct ElementTypeOf<uint8_t> {
  static constexpr ElementType value = ElementType::kUint8;
};
template <>
struct ElementTypeOf<uint16_t> {
  static constexpr ElementType value = ElementType::kUint16;
};
template <>
struct ElementTypeOf<uint32_t> {
  static constexpr ElementType value = ElementType::kUint32;
};
template <>
struct ElementTypeOf<uint64_t> {
  static constexpr ElementType value = ElementType::kUint64;
};
template <>
struct ElementTypeOf<bool> {
  static constexpr ElementType value = ElementType::kBool;
};
}  // namespace detail

template <typename T>
Value Value::CreateTensor(T* data, size_t count, std::vector<int64_t> shape) {
  return CreateTensor(detail::ElementTypeOf<T>::value, std::move(shape), data, count * sizeof(T));
}

}  // namespace plimsoll
