// ScatterElements, for its older name as well.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

const void* scatter_elements_attrs(AttrContext& c);
void infer_scatter_elements(InferContext& c);
void alias_scatter_elements(AliasContext& c);
void run_scatter_elements(const RunContext& c);
void gradient_scatter_elements(GradientContext& c);

}  // namespace plimsoll
