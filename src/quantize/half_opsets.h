// Since when ONNX's operators have floats of 16 bits, so that what is written is ONNX to everybody else too.
// Ours take them in any opset.
#pragma once

#include <string_view>

#include "tensor/element_type.h"

namespace plimsoll {

// `type` is kFloat16 or kBFloat16. The oldest opset of ai.onnx whose operator of that name takes it.
int first_opset_with(std::string_view op_type, ElementType type);

}  // namespace plimsoll
