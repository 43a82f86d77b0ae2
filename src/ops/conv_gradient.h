// What the gradients of convolutions share.
#pragma once

#include "graph/gradient.h"

namespace plimsoll {

// Of a tensor (N, C, spatial...): the sums of its channels, the gradient of a bias.
Edge* sum_of_channels(const GradientContext& c, Edge* dy);
// The spatial sizes of the weights, input 1; an Error if they are not known.
std::vector<int64_t> kernel_sizes(const GradientContext& c);

}  // namespace plimsoll
