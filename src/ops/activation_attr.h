// The attributes `activation` and `activation_params` of fused operators.
#pragma once

#include "graph/op_def.h"
#include "kernels/activation.h"

namespace plimsoll {

// `activation` is the name of an ONNX operator (or Silu), "" for none; the parameters are its alpha and
// beta, or a Clip's bounds.
kernels::Activation read_activation(AttrContext& c);
// The same by other names, which outlive the context.
kernels::Activation read_activation(AttrContext& c, std::string_view attribute,
                                    std::string_view params_attribute);

// The same function on one number.
float apply_activation(kernels::Activation f, float x);
double apply_activation(kernels::Activation f, double x);

}  // namespace plimsoll
