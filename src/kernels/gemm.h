#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/storage.h"

// Matrix product with the right operand packed ahead of time:
//   C = activation(alpha * A * B + bias + beta * addend)
// for float, double, Float16 and BFloat16, which are computed in float and rounded once. Nothing here
// allocates, owns memory or throws; every buffer is the caller's. Strides count elements.
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

template <class T = float>
struct GemmLeft {
  const T* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

// The right operand before packing. `data` may have any alignment: it is only read bytewise.
struct GemmRight {
  const void* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

template <class T = float>
struct GemmOutput {
  T* data = nullptr;
  int64_t row_stride = 0;
};

template <class T = float>
struct GemmEpilogue {
  float alpha = 1;
  const T* bias = nullptr;    // n values, one per column, or null
  const T* addend = nullptr;  // m x n, or null; is the output itself (same stride) or apart from it
  int64_t addend_stride = 0;
  float beta = 1;
  bool addend_last = false;  // activation(alpha * A * B + bias) + beta * addend
  Activation activation;
};

// Columns per panel: differs between instruction sets, so it names the packed format.
template <class T = float>
int packed_b_format();

// Bytes of B[k x n] packed; a multiple of 64 and 0 when k or n is 0.
template <class T = float>
size_t packed_b_bytes(int64_t k, int64_t n);

// Packs into `dst`, packed_b_bytes(k, n) bytes aligned to kGemmAlignment.
template <class T = float>
void pack_b(int64_t k, int64_t n, GemmRight b, void* dst, int threads = 1);

// Scratch of gemm_packed: 0 unless A's columns are strided or 16 bits wide, when blocks of its rows are
// copied there; or its rows lie a multiple of 4096 bytes apart, when that is faster.
template <class T = float>
size_t gemm_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads);
// A bound of it for every m, n and stride.
template <class T = float>
size_t gemm_most_scratch_bytes(int64_t k, int threads);

// `scratch` is aligned to kGemmAlignment; null if its size is 0, and may be where A's columns are side by
// side and not 16 bits wide. C may not overlap A or packed B.
template <class T>
void gemm_packed_as(GemmShape shape, GemmLeft<T> a, const void* packed_b, GemmOutput<T> c,
                    const GemmEpilogue<T>& epilogue, void* scratch, int threads);
inline void gemm_packed(GemmShape shape, GemmLeft<> a, const void* packed_b, GemmOutput<> c,
                        const GemmEpilogue<>& epilogue, void* scratch, int threads) {
  gemm_packed_as<float>(shape, a, packed_b, c, epilogue, scratch, threads);
}

// Both operands at run time: the scratch also holds B while it is packed.
template <class T = float>
size_t gemm_dynamic_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads);
template <class T>
void gemm_as(GemmShape shape, GemmLeft<T> a, GemmRight b, GemmOutput<T> c, const GemmEpilogue<T>& epilogue,
             void* scratch, int threads);
inline void gemm(GemmShape shape, GemmLeft<> a, GemmRight b, GemmOutput<> c, const GemmEpilogue<>& epilogue,
                 void* scratch, int threads) {
  gemm_as<float>(shape, a, b, c, epilogue, scratch, threads);
}

}  // namespace plimsoll::kernels
