// The attributes of Gradient, for who lowers it.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

struct GradientAttrs {
  std::span<const std::string_view> xs, zs;
  std::string_view y;
};

inline constexpr std::string_view kGradientOperator = "Gradient";  // of kTrainingDomain

}  // namespace plimsoll
