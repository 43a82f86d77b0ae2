// The gradient of normalizations of rows, each row by itself: LayerNormalization, RMSNormalization, and what
// can be seen so.
#pragma once

#include "graph/gradient.h"

namespace plimsoll {

struct RowNorm {
  int64_t axis = -1;  // the first of the normalized dimensions
  float epsilon = 1e-5f;
  bool centered = true;  // otherwise nothing is subtracted
};

// Of X, input 0, with a scale, input 1, and a bias, input 2, which may be absent.
void gradient_row_norm(GradientContext& c, const RowNorm& norm);

// Of a normalization without parameters, from the gradient of its output.
Edge* row_norm_gradient(const GradientContext& c, Edge* x, Edge* dy, const RowNorm& norm);
// The normalized rows again.
Edge* normalized_rows(const GradientContext& c, Edge* x, const RowNorm& norm);

// X, input 0, is seen as [N, groups, everything else] and normalized over the last, then scaled and shifted
// by inputs 1 and 2 along dimension 1 of [N, parameters, everything else]. 0: as many as there are channels.
void gradient_grouped_norm(GradientContext& c, int64_t groups, int64_t parameters, float epsilon);

}  // namespace plimsoll
