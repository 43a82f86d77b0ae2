// What BitwiseAnd, BitwiseOr and BitwiseXor share.
#pragma once

#include "ops/elementwise.h"

namespace plimsoll {

inline void infer_bitwise(InferContext& c) {
  infer_binary(c, kIntegerTypes);
}

// The sign does not matter: a loop for every width will do.
template <typename F>
void run_bitwise(const RunContext& c, F f) {
  visit_width(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) run_binary<T, T>(c, f);
  });
}

constexpr OpDef bitwise_op(std::string_view name, void (*run)(const RunContext&)) {
  return {.name = name,
          .inputs = {2, 2},
          .attrs = binary_attrs,
          .infer = infer_bitwise,
          .alias = alias_elementwise,
          .run = run,
          .cost = cost_elementwise,
          .layout = layout_broadcasting,
          .region = region_broadcasting};
}

}  // namespace plimsoll
