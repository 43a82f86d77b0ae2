// A single TensorProto as bytes: the input_K.pb and output_K.pb of ONNX's test data.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"

namespace plimsoll {

// `name`, if not null, is set to the tensor's name. The result points into `bytes` where no decoding is
// needed, else into the arena. Throws kInvalidModel; kNotImplemented for what looks like a sequence or an
// optional.
TensorData read_tensor(std::span<const std::byte> bytes, BumpArena& arena, std::string_view* name = nullptr);

std::string write_tensor(const TensorData& tensor, std::string_view name = {});

}  // namespace plimsoll
