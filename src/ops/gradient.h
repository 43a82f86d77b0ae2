// The attributes of Gradient, for who lowers it.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

struct GradientAttrs {
  std::span<const std::string_view> xs, zs;
  std::string_view y;
};

extern const OpDef op_gradient;

}  // namespace plimsoll
