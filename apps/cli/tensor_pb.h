// ONNX test data: one TensorProto per file.
#pragma once

#include <plimsoll/value.h>

#include <string>

namespace plimsoll::cli {

struct NamedValue {
  std::string name;  // may be empty
  Value value;
};

// Throws kIo, kInvalidArgument; kNotImplemented for sequences, optionals and external data.
NamedValue read_tensor_pb(const std::string& path);

}  // namespace plimsoll::cli
