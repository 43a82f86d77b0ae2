// UnaryGradient: what gradients of elementwise functions write, so that they take one pass over memory.
#pragma once

#include "graph/gradient.h"
#include "kernels/unary.h"

namespace plimsoll {

// Gives input 0 of an elementwise function its gradient, from the function's input (of Sigmoid and Tanh its
// output) and what arrives.
void set_unary_gradient(GradientContext& c, const kernels::Unary& f);

template <kernels::UnaryKind kind>
void unary_gradient(GradientContext& c) {
  set_unary_gradient(c, {kind});
}

}  // namespace plimsoll
