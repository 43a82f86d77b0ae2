// What Dropout and its gradient share: the same numbers are drawn again, so that no mask is kept.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

const void* dropout_attrs(AttrContext& c);
void infer_dropout(InferContext& c);
void alias_dropout(AliasContext& c);
void run_dropout(const RunContext& c);

}  // namespace plimsoll
