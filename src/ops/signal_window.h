// The windows of signal processing: sums of cosines.
#pragma once

#include "graph/op_def.h"
#include "ops/elementwise.h"

namespace plimsoll {

// The operators' common attribute output_datatype: a numeric type.
ElementType read_output_type(AttrContext& c);
// An element of any numeric type.
void write_number(const TensorView& y, int64_t i, double value);

const void* window_attrs(AttrContext& c);
void infer_window(InferContext& c);
// a - b cos(2 pi i / n) + d cos(4 pi i / n)
void run_window(const RunContext& c, double a, double b, double d);

}  // namespace plimsoll
