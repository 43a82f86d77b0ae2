// Part of unary.h: the functions of doubles that have vectors.
#pragma once

#include "kernels/unary.h"

namespace plimsoll::kernels {

// False if this one has none: then nothing is done.
bool map_vectors_f64(const Unary& f, const double* x, double* y, int64_t count);

}  // namespace plimsoll::kernels
