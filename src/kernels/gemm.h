#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"

// Single-precision matrix product with the right operand packed ahead of time:
//   C = activation(alpha * A * B + bias + beta * addend)
// Nothing here allocates, owns memory or throws; every buffer is the caller's. Strides count elements.
//
// Numerics: every element of the product is one chain of fused multiply-adds over k in ascending order
// (multiply then add below AVX2), so the result depends neither on `threads` nor on m, n or blocking.
//
// The packed format depends on the instruction set that Highway chose for this process: pack and
// multiply in the same process, or compare packed_b_format() before reusing stored bytes.
namespace plimsoll::kernels {

inline constexpr size_t kGemmAlignment = 64;

struct GemmShape {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
};

struct GemmLeft {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

// The right operand before packing. `data` may have any alignment: it is only read bytewise.
struct GemmRight {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

struct GemmOutput {
  float* data = nullptr;
  int64_t row_stride = 0;
};

struct GemmEpilogue {
  float alpha = 1;
  const float* bias = nullptr;    // n values, one per column, or null
  const float* addend = nullptr;  // m x n, or null; is the output itself (same stride) or apart from it
  int64_t addend_stride = 0;
  float beta = 1;
  bool addend_last = false;  // activation(alpha * A * B + bias) + beta * addend
  Activation activation;
};

// Columns per panel: differs between instruction sets, so it names the packed format.
int packed_b_format();

// Bytes of B[k x n] packed; a multiple of 64 and 0 when k or n is 0.
size_t packed_b_bytes(int64_t k, int64_t n);

// Packs into `dst`, packed_b_bytes(k, n) bytes aligned to kGemmAlignment.
void pack_b(int64_t k, int64_t n, GemmRight b, void* dst, int threads = 1);

// Scratch of gemm_packed: 0 unless A's columns are strided, when blocks of its rows are copied there.
size_t gemm_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads);
// A bound of it for every m, n and stride.
size_t gemm_most_scratch_bytes(int64_t k, int threads);

// `scratch` is aligned to kGemmAlignment; null if its size is 0. C may not overlap A or packed B.
void gemm_packed(GemmShape shape, GemmLeft a, const void* packed_b, GemmOutput c,
                 const GemmEpilogue& epilogue, void* scratch, int threads);

// Both operands at run time: the scratch also holds B while it is packed.
size_t gemm_dynamic_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads);
void gemm(GemmShape shape, GemmLeft a, GemmRight b, GemmOutput c, const GemmEpilogue& epilogue, void* scratch,
          int threads);

}  // namespace plimsoll::kernels
