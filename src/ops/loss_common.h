// The losses over classes: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

const void* loss_attrs(AttrContext& c);
// Scores (N, C, d1, ...), targets (N, d1, ...), optional weights (C) -> loss, and scores' shape again.
void infer_loss(InferContext& c);
// With `softmax`, scores become logarithms of probabilities first; output 1, if wanted, receives them.
void run_loss(const RunContext& c, bool softmax);
void gradient_loss(GradientContext& c, bool softmax);

}  // namespace plimsoll
