// Calls a custom operator's functions, and answers them.
#pragma once

#include "graph/op_def.h"
#include "plimsoll/custom_op.h"

namespace plimsoll {

struct CustomOpDef : OpDef {
  const PlimsollOp* op = nullptr;
};

// `op` must outlive it.
CustomOpDef custom_op_def(const PlimsollOp& op);

}  // namespace plimsoll
