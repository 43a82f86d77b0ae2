// The gradient of LSTM, GRU and RNN: back through time in one node, and around it products of matrices that
// make the gradients of inputs and weights from those of the gates.
#pragma once

#include "graph/gradient.h"

namespace plimsoll {

// `cell` is lstm, gru or rnn.
void gradient_recurrent(GradientContext& c, std::string_view cell);

}  // namespace plimsoll
