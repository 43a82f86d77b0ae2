// Matrix product of 8-bit integers with 32-bit sums, the right operand packed ahead of time:
//   C = finish(sum over k of (A - a_zero) * (B - b_zero))
// Exact: no product and no pair of products ever saturates; a sum beyond 32 bits wraps. Nothing here
// allocates, owns memory or throws; every buffer is the caller's. Strides count elements.
//
// The packed format depends on the instruction set that Highway chose for this process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace plimsoll::kernels {

struct IntGemmLeft {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  bool is_signed = false;
  int32_t zero_point = 0;
  const int32_t* zero_points = nullptr;  // one per row, instead
  // Where rows are no part of a matrix: writes the k elements of `count` of them, the first elements `stride`
  // from each other. What lies between rows, and up to the last one's stride, may be overwritten.
  void (*read_rows)(const void* context, int64_t row, int64_t count, uint8_t* to, int64_t stride) = nullptr;
  const void* context = nullptr;
};

// The right operand before packing, at any alignment.
struct IntGemmRight {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  bool is_signed = false;
  // Row i is at i / block * block_stride + i % block * row_stride.
  int64_t block = INT64_MAX, block_stride = 0;
};

enum class IntGemmResult : uint8_t { kInt32, kFloat, kUint8, kInt8 };

struct IntGemmOutput {
  void* data = nullptr;
  int64_t row_stride = 0;
  IntGemmResult type = IntGemmResult::kInt32;
};

// A matrix of bytes that is added to an 8-bit result y:
//   saturate(round((y - zero_point) * own_scale + (z - z.zero_point) * z.scale) + sum_zero_point)
struct IntGemmAddend {
  const void* data = nullptr;
  int64_t row_stride = 0;
  bool is_signed = false;
  int32_t zero_point = 0;
  float scale = 1, own_scale = 1;
  int32_t sum_zero_point = 0;
};

// sum + bias; as float: * scale + float_bias; to 8 bits: * scale, half to even, + zero_point, saturated; then
// the addend.
struct IntGemmFinish {
  bool b_signed = false;
  int32_t b_zero_point = 0;
  const int32_t* b_zero_points = nullptr;  // one per column, instead
  const int32_t* bias = nullptr;           // one per column, or null
  float scale = 1;
  const float* scales = nullptr;  // one per column, instead
  const float* float_bias = nullptr;
  int32_t zero_point = 0;
  // What 8-bit results are kept within besides the range of their type: what Relu and Clip are.
  int32_t least = INT32_MIN, most = INT32_MAX;
  IntGemmAddend addend;
};

// Names the packed format.
int int_gemm_format();
// Bytes of B[k x n] packed: its elements, the sums of its columns and what form it is in.
size_t int_gemm_packed_bytes(int64_t k, int64_t n);
// Not less than that in any form, as a number or an expression; `sixteenth`: k / 16, rounded up. Columns are
// in whole panels with a sum each, rows in whole groups, or in equal steps of up to 16 groups.
template <typename T>
T int_gemm_packed_bound(T k, T n, T sixteenth) {
  return (n + T(32)) * (k + sixteenth + T(16)) + T(64);
}
void int_gemm_pack(int64_t k, int64_t n, const IntGemmRight& b, void* packed);

// Scratch of all threads is threads * (per_k * k + base).
struct IntGemmScratch {
  int64_t per_k, base;
};
IntGemmScratch int_gemm_scratch();
inline int64_t int_gemm_scratch_bytes(int64_t k, int threads) {
  const IntGemmScratch scratch = int_gemm_scratch();
  return threads * (scratch.per_k * k + scratch.base);
}

// C may not overlap A or packed B; `scratch` is aligned to 64.
void int_gemm(GemmShape shape, const IntGemmLeft& a, const void* packed_b, const IntGemmOutput& c,
              const IntGemmFinish& finish, void* scratch, int threads);

}  // namespace plimsoll::kernels
