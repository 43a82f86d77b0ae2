// ONNX test data: one TensorProto, SequenceProto, OptionalProto or MapProto per file. The file does not say
// which.
#pragma once

#include <plimsoll/value.h>

#include <string>

namespace plimsoll::cli {

struct NamedValue {
  std::string name;  // may be empty
  Value value;
};

// `kind` and `type` are what the model declares: of the file neither can be told, the type if a sequence is
// empty. Throws kIo, kInvalidArgument; kNotImplemented for sparse tensors and external data.
NamedValue read_value_pb(const std::string& path, ValueKind kind, ElementType type);

}  // namespace plimsoll::cli
