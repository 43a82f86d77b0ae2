// What one core of this machine can do at most, measured: the roof over every kernel.
#pragma once

#include <span>

namespace plimsoll::kernels {

// GFLOP/s of independent fused multiply-adds in registers on one core, with the vectors of the instruction
// set that Highway has chosen. Measured for a few milliseconds, best of many.
double fma_peak();

// GB/s at which one core reads `data` again and again: from memory if it is larger than all caches. Best of a
// few.
double read_peak(std::span<const float> data);

}  // namespace plimsoll::kernels
