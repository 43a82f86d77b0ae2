// Matrix product of floats whose operands are rounded to bfloat16, the right one ahead of time and packed in
// half the bytes that floats take:
//   C = activation(alpha * rounded(A) * rounded(B) + bias + beta * addend)
// Products of two such numbers are exact in float, their sums are rounded as float's are. Nothing here
// allocates, owns memory or throws; every buffer is the caller's. Strides count elements.
//
// Numerics: the order in which an element's products are added depends on the form and on k, never on
// `threads`, m or n. Numbers too small for a normal float count as zero in some forms.
//
// The packed format is the same everywhere: panel after panel of kRoundedColumns columns, each [k / 2] times
// the two elements of every column; k is filled up with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace plimsoll::kernels {

inline constexpr int64_t kRoundedColumns = 16;  // of a panel
inline constexpr int64_t kRoundedDepth = 32;    // k is a multiple of it, once packed

enum class RoundedForm : uint8_t {
  kWide,   // widened to float again: on every machine, and no faster than float
  kPairs,  // AVX512_BF16
  kTiles,  // AMX-BF16
};
// The best one that this machine and the instruction set that Highway chose have.
RoundedForm rounded_form();
bool has_rounded_form(RoundedForm form);

struct RoundedLeft {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  // Where rows are no part of a matrix: writes the k elements of one of them.
  void (*read_row)(const void* context, int64_t row, BFloat16* to) = nullptr;
  const void* context = nullptr;
};

// The right operand, floats at any alignment, before packing.
struct RoundedRight {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  // Row i is at i / block * block_stride + i % block * row_stride.
  int64_t block = INT64_MAX, block_stride = 0;
  const float* scale = nullptr;  // one factor per column, multiplied in before rounding; or null
};

// Bytes of B[k x n] packed; a multiple of 64.
size_t rounded_b_bytes(int64_t k, int64_t n);
// Packs into `dst`, aligned to kGemmAlignment.
void pack_rounded_b(int64_t k, int64_t n, const RoundedRight& b, void* dst, int threads = 1);

// Of all threads: blocks of A's rows, rounded.
size_t rounded_scratch_bytes(GemmShape shape, int threads);
// A bound of it for every m and n.
size_t rounded_most_scratch_bytes(int64_t k, int threads);

// `scratch` is aligned to kGemmAlignment; C may not overlap A or packed B. `form` is one that the machine
// has.
void rounded_gemm(GemmShape shape, const RoundedLeft& a, const void* packed_b, GemmOutput<> c,
                  const GemmEpilogue<>& epilogue, void* scratch, int threads, RoundedForm form);
inline void rounded_gemm(GemmShape shape, const RoundedLeft& a, const void* packed_b, GemmOutput<> c,
                         const GemmEpilogue<>& epilogue, void* scratch, int threads) {
  rounded_gemm(shape, a, packed_b, c, epilogue, scratch, threads, rounded_form());
}

}  // namespace plimsoll::kernels
