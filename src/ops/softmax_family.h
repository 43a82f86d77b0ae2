// What Softmax and LogSoftmax share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

const void* softmax_attrs(AttrContext& c);
void infer_softmax(InferContext& c);
void alias_softmax(AliasContext& c);
Cost cost_softmax(const NodeContext& c);
void layout_softmax(LayoutContext& c);
void region_softmax(RegionContext& c);
const void* select_softmax(SelectContext& c);
void run_softmax(const RunContext& c, bool logarithm);

}  // namespace plimsoll
