// What ArgMax and ArgMin share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

struct ArgExtremeAttrs {
  int64_t axis = 0;
  bool keep_dims = true;
  bool last = false;  // of equal elements the last wins
  bool largest = true;
};

const void* arg_extreme_attrs(AttrContext& c, bool largest);
void infer_arg_extreme(InferContext& c);
void run_arg_extreme(const RunContext& c);

}  // namespace plimsoll
