// What operators that pick elements cost.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

// Of its first input such an operator reads as much as it writes, however large the rest is; other inputs say
// where.
inline Cost cost_selection(const NodeContext& c) {
  const auto bytes = [](const TypeInfo& type) {
    return element_bytes(type.type, product(type.dims).value());
  };
  const TypeInfo &data = c.input(0).type, &picked = c.output(0).type;
  return {product(picked.dims).value(), tensor_bytes(c) - bytes(data) + bytes(picked)};
}

}  // namespace plimsoll
