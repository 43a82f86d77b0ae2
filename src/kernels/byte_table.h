// y[i] = table[x[i]]: whatever depends on one byte alone.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// y may be x.
void apply_byte_table(const uint8_t* x, const uint8_t* table, int64_t count, uint8_t* y, int threads);

}  // namespace plimsoll::kernels
