// The gradient of LSTM, GRU and RNN: back through time in one node, and around it products of matrices that
// make the gradients of inputs and weights from those of the gates.
#pragma once

#include "graph/gradient.h"

namespace plimsoll {

// Outputs of RecurrentGradient; those of one number belong to different cells.
inline constexpr size_t kToP = 0, kStates = 1, kToH0 = 2, kToC0 = 3, kToR = 3, kReset = 4, kToPeephole = 4;

// `cell` is lstm, gru or rnn.
void gradient_recurrent(GradientContext& c, std::string_view cell);

}  // namespace plimsoll
