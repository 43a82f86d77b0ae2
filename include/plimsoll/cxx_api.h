// ONNX Runtime's C++ names over Plimsoll: for programs written against onnxruntime_cxx_api.h.
//
//   #include <plimsoll/cxx_api.h>
//   namespace Ort = plimsoll;
//
// Includes the whole engine and adds what only such programs name: the C enumerations and the descriptions of
// types. docs/config-keys.md and docs/arenas.md tell what settings mean here.
#pragma once

#include "plimsoll/config_keys.h"
#include "plimsoll/session.h"

#define ORT_API_VERSION 23
#define ORTCHAR_T char
#define ORT_TSTR(text) text

enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE,
  ORT_LOGGING_LEVEL_INFO,
  ORT_LOGGING_LEVEL_WARNING,
  ORT_LOGGING_LEVEL_ERROR,
  ORT_LOGGING_LEVEL_FATAL,
};
enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
};
enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };
enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
};
enum OrtMemType {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = OrtMemTypeCPUOutput,
  OrtMemTypeDefault = 0,
};
enum ONNXType {
  ONNX_TYPE_UNKNOWN,
  ONNX_TYPE_TENSOR,
  ONNX_TYPE_SEQUENCE,
  ONNX_TYPE_MAP,
  ONNX_TYPE_OPAQUE,
  ONNX_TYPE_SPARSETENSOR,
  ONNX_TYPE_OPTIONAL,
};
enum ONNXTensorElementDataType {  // plimsoll::ElementType has the same numbers
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1,
};

namespace plimsoll {

using Exception = Error;

// Element type and sizes of a tensor; -1 where a size is open.
class TensorTypeAndShapeInfo {
 public:
  TensorTypeAndShapeInfo(ElementType type, std::vector<int64_t> shape, std::vector<std::string> symbols = {})
      : type_(type), shape_(std::move(shape)), symbols_(std::move(symbols)) {}

  ONNXTensorElementDataType GetElementType() const { return static_cast<ONNXTensorElementDataType>(type_); }
  std::vector<int64_t> GetShape() const { return shape_; }
  size_t GetDimensionsCount() const { return shape_.size(); }
  void GetDimensions(int64_t* values, size_t count) const {
    for (size_t i = 0; i < count && i < shape_.size(); ++i) values[i] = shape_[i];
  }
  // Open sizes count as 1.
  size_t GetElementCount() const {
    size_t count = 1;
    for (int64_t d : shape_) count *= d < 0 ? 1 : static_cast<size_t>(d);
    return count;
  }
  // "" where a size is a number. Valid as long as this is.
  std::vector<const char*> GetSymbolicDimensions() const {
    std::vector<const char*> names;
    for (size_t i = 0; i < shape_.size(); ++i)
      names.push_back(i < symbols_.size() ? symbols_[i].c_str() : "");
    return names;
  }

 private:
  ElementType type_;
  std::vector<int64_t> shape_;
  std::vector<std::string> symbols_;
};

namespace cxx_api {

// The type of an input or output.
class TypeInfo {
 public:
  explicit TypeInfo(const ValueInfo& info) : info_(info) {}

  ONNXType GetONNXType() const {
    switch (info_.kind) {
      case ValueKind::kTensor:
        return ONNX_TYPE_TENSOR;
      case ValueKind::kSequence:
        return ONNX_TYPE_SEQUENCE;
      case ValueKind::kMap:
        return ONNX_TYPE_MAP;
      case ValueKind::kOptional:
        return ONNX_TYPE_OPTIONAL;
      default:
        return ONNX_TYPE_SPARSETENSOR;
    }
  }
  // Of other kinds: that of the tensors in it, without sizes.
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const { return {info_.type, info_.dims, info_.symbols}; }
  const std::string& GetText() const { return info_.type_text; }

 private:
  ValueInfo info_;
};

inline const ValueInfo& info_at(const std::vector<ValueInfo>& infos, size_t index) {
  if (index >= infos.size())
    throw Error(ErrorCode::kInvalidArgument,
                "number " + std::to_string(index) + ": there are " + std::to_string(infos.size()));
  return infos[index];
}

}  // namespace cxx_api
using cxx_api::TypeInfo;

template <typename T>
Value Value::CreateTensor(const MemoryInfo& info, T* data, size_t count, const int64_t* shape, size_t rank) {
  check_cpu(info);
  return CreateTensor(detail::ElementTypeOf<T>::value, {shape, shape + rank}, data, count * sizeof(T));
}
template <typename Type>
requires(std::is_enum_v<Type>) Value Value::CreateTensor(const MemoryInfo& info, void* data, size_t bytes,
                                                         const int64_t* shape, size_t rank, Type type) {
  check_cpu(info);
  return CreateTensor(static_cast<ElementType>(type), {shape, shape + rank}, data, bytes);
}
template <typename T>
Value Value::CreateTensor(const Allocator& allocator, const int64_t* shape, size_t rank) {
  return CreateTensor(allocator, detail::ElementTypeOf<T>::value, std::vector<int64_t>(shape, shape + rank));
}
template <typename Type>
requires(std::is_enum_v<Type>) Value Value::CreateTensor(const Allocator& allocator, const int64_t* shape,
                                                         size_t rank, Type type) {
  return CreateTensor(allocator, static_cast<ElementType>(type), std::vector<int64_t>(shape, shape + rank));
}

inline TensorTypeAndShapeInfo Value::GetTensorTypeAndShapeInfo() const {
  return {GetElementType(), GetShape()};
}
inline cxx_api::TypeInfo Session::GetInputTypeInfo(size_t index) const {
  return TypeInfo(cxx_api::info_at(GetInputs(), index));
}
inline cxx_api::TypeInfo Session::GetOutputTypeInfo(size_t index) const {
  return TypeInfo(cxx_api::info_at(GetOutputs(), index));
}
inline cxx_api::TypeInfo Session::GetOverridableInitializerTypeInfo(size_t index) const {
  return TypeInfo(cxx_api::info_at(GetOverridableInitializers(), index));
}

}  // namespace plimsoll
