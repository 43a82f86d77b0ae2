// What gemm_<type>.cpp gives to gemm.cpp: the functions of one element type, for the instruction set at hand.
#pragma once

#include "kernels/gemm.h"

namespace plimsoll::kernels {

template <class T>
struct GemmFunctions {
  int panel_columns;
  int lanes;
  int64_t (*scratch_elements)(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads);
  int64_t (*most_scratch_elements)(int64_t k, int threads);
  void (*multiply)(GemmShape shape, const GemmLeft<T>& a, const void* packed_b, const GemmOutput<T>& c,
                   const GemmEpilogue<T>& epilogue, LaneOf<T>* scratch, int threads);
  // One or two rows by B as it is; not in 16 bits. B's rows, or its columns and A's rows, lie side by side.
  void (*multiply_thin)(GemmShape shape, const GemmLeft<T>& a, const GemmRight& b, const GemmOutput<T>& c,
                        const GemmEpilogue<T>& epilogue, int threads);
  // `is_used_next`: worth a place in the caches.
  void (*pack)(int64_t k, int64_t n, const GemmRight& b, T* dst, int threads, bool is_used_next);
};

template <class T>
const GemmFunctions<T>& gemm_functions();
template <>
const GemmFunctions<float>& gemm_functions();
template <>
const GemmFunctions<double>& gemm_functions();
template <>
const GemmFunctions<Float16>& gemm_functions();
template <>
const GemmFunctions<BFloat16>& gemm_functions();

}  // namespace plimsoll::kernels
