// TypeProto -> TypeInfo, with the model's names for dimensions.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/message.h"
#include "onnx/reader.h"
#include "tensor/tensor.h"

namespace plimsoll::onnx {

class TypeReader {
 public:
  TypeReader(BumpArena& arena, DimPool& dims, const LoadOptions& options)
      : arena_(arena), dims_(dims), options_(options) {}
  // `owner` is the value whose type it is: dimensions without a name are named after it.
  TypeInfo read(Message type, std::string_view owner) { return read(type, owner, 0); }

 private:
  TypeInfo read(Message type, std::string_view owner, int depth);
  void read_tensor_type(Message type, std::string_view owner, TypeInfo& out);
  const TypeInfo* read_element(Message type, uint32_t field, std::string_view owner, int depth);
  void read_shape(Message shape, std::string_view owner, TypeInfo& out);
  Dim read_dim(Message dim, std::string_view owner, size_t index);
  Dim named(std::string_view name);
  int64_t given_size(std::string_view owner, std::string_view name, std::string_view denotation) const;
  std::string unused(const std::string& name);

  BumpArena& arena_;
  DimPool& dims_;
  const LoadOptions& options_;
  std::unordered_map<std::string_view, Dim> named_;  // by the file's name
  std::unordered_map<std::string, int> used_;        // names of symbols, and how often they were wanted
};

}  // namespace plimsoll::onnx
