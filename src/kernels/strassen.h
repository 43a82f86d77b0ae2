#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

// gemm.h's product of floats with a packed B, by Strassen's way (Winograd's form of it, one level): halves of
// m, k and n are multiplied 7 times instead of 8. B is packed as for gemm_packed, and nothing more of it is
// kept.
//
// Numerics: rounds off about twice as much as gemm_packed, relative to the largest numbers of two rows of A
// and two columns of B. Where A has numbers that are not finite it is gemm_packed: they would spread from a
// row to its partner. The same for every number of threads.
namespace plimsoll::kernels {

// Whether it is faster than gemm_packed, for A's with columns side by side.
bool strassen_pays(GemmShape shape);

size_t strassen_scratch_bytes(GemmShape shape, int64_t a_row_stride, int threads);
// A bound of it for every m, n and stride.
size_t strassen_most_scratch_bytes(int64_t k, int threads);

// For shapes that it pays for, and a.col_stride == 1. `scratch` is aligned to kGemmAlignment.
void strassen(GemmShape shape, GemmLeft<> a, const void* packed_b, GemmOutput<> c,
              const GemmEpilogue<>& epilogue, void* scratch, int threads);

}  // namespace plimsoll::kernels
