#pragma once

namespace plimsoll::bench {

// GFLOP/s of independent fused multiply-adds in registers on one core, with the vectors of the instruction
// set that Highway has chosen. Measured for a few milliseconds, best of many.
double fma_peak();

}  // namespace plimsoll::bench
