// What Softmax, LogSoftmax and Hardmax share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

struct SoftmaxAttrs {
  int64_t axis = -1;
  bool flattens = false;   // before opset 13: over all dimensions from the axis on
  bool logarithm = false;  // of a gradient: whose
};

const void* softmax_attrs(AttrContext& c);
void infer_softmax(InferContext& c);
void alias_softmax(AliasContext& c);
Cost cost_softmax(const NodeContext& c);
void layout_softmax(LayoutContext& c);
void region_softmax(RegionContext& c);
const void* select_softmax(SelectContext& c);
void run_softmax(const RunContext& c, bool logarithm);
void gradient_softmax(GradientContext& c, bool logarithm);

// [outer, count, inner]: lines run along the middle.
struct SoftmaxLines {
  int64_t outer = 1, count = 1, inner = 1;
};
SoftmaxLines softmax_lines(const RunContext& c);

}  // namespace plimsoll
