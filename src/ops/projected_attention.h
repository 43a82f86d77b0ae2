// com.microsoft's Attention before and after its projection.
#pragma once

#include "ops/multi_head_attention.h"

namespace plimsoll {

struct ProjectedAttrs {
  int64_t heads = 1;
  int64_t width = 0, value_width = 0;  // of Q and K, and of V; 0: a third of all each
  std::optional<double> scale;
  float filter = -10000.0f;
  bool causal = false, shares = false;
};
void read_projected(AttrContext& c, ProjectedAttrs& a);

// Inputs besides the first.
struct ProjectedInputs {
  size_t mask, past, bias, past_length;
};

struct ProjectedShape {
  Dim batch, queries, head, value_head, past, rows;
};
ProjectedShape projected_shape(const InferContext& c, const ProjectedAttrs& a, const ProjectedInputs& at,
                               Dim batch, Dim queries, Dim columns);
// Checks all but the first inputs and sets the outputs; `columns` are those of Q, K and V together.
void infer_projected(InferContext& c, const ProjectedAttrs& a, const ProjectedInputs& at, Dim batch,
                     Dim queries, Dim columns);

}  // namespace plimsoll
