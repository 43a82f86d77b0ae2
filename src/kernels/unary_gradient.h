// Gradients of functions of one float in one pass: dx = dy f'. For float, double, Float16 and BFloat16, which
// are computed in float.
#pragma once

#include <cstdint>

#include "kernels/unary.h"

namespace plimsoll::kernels {

// Of kErf, kGelu, kGeluTanh, kHardSwish and kSwish `v` is the function's argument, of kSigmoid and kTanh its
// result; dx may be v or dy.
template <class T>
void unary_gradient(const Unary& f, const T* v, const T* dy, T* dx, int64_t count);

}  // namespace plimsoll::kernels
