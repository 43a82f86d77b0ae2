#include "kernels/gemm.h"

#include "kernels/gemm_functions.h"

namespace plimsoll::kernels {
namespace {

template <class E>
size_t whole_lines(int64_t elements) {
  return (static_cast<size_t>(elements) * sizeof(E) + kGemmAlignment - 1) / kGemmAlignment * kGemmAlignment;
}

// So few rows that packing B costs more than the product.
template <class T>
bool is_thin(GemmShape shape, const GemmLeft<T>& a, const GemmRight& b) {
  constexpr int64_t kFewRows = 2;
  if (kIsHalf<T> || shape.m > kFewRows) return false;
  return b.col_stride == 1 || (b.row_stride == 1 && a.col_stride == 1);
}

}  // namespace

template <class T>
int packed_b_format() {
  return gemm_functions<T>().panel_columns;
}

template <class T>
size_t packed_b_bytes(int64_t k, int64_t n) {
  const int64_t lanes = gemm_functions<T>().lanes;
  return whole_lines<T>(k * ((n + lanes - 1) / lanes * lanes));
}

template <class T>
void pack_b(int64_t k, int64_t n, GemmRight b, void* dst, int threads) {
  gemm_functions<T>().pack(k, n, b, static_cast<T*>(dst), threads, false);
}

template <class T>
size_t gemm_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads) {
  return whole_lines<LaneOf<T>>(
      gemm_functions<T>().scratch_elements(shape, a_row_stride, a_col_stride, threads));
}

template <class T>
size_t gemm_most_scratch_bytes(int64_t k, int threads) {
  return whole_lines<LaneOf<T>>(gemm_functions<T>().most_scratch_elements(k, threads));
}

template <class T>
void gemm_packed_as(GemmShape shape, GemmLeft<T> a, const void* packed_b, GemmOutput<T> c,
                    const GemmEpilogue<T>& epilogue, void* scratch, int threads) {
  gemm_functions<T>().multiply(shape, a, packed_b, c, epilogue, static_cast<LaneOf<T>*>(scratch), threads);
}

template <class T>
size_t gemm_dynamic_scratch_bytes(GemmShape shape, int64_t a_row_stride, int64_t a_col_stride, int threads) {
  return packed_b_bytes<T>(shape.k, shape.n) +
         gemm_scratch_bytes<T>(shape, a_row_stride, a_col_stride, threads);
}

template <class T>
void gemm_as(GemmShape shape, GemmLeft<T> a, GemmRight b, GemmOutput<T> c, const GemmEpilogue<T>& epilogue,
             void* scratch, int threads) {
  if (is_thin<T>(shape, a, b)) return gemm_functions<T>().multiply_thin(shape, a, b, c, epilogue, threads);
  gemm_functions<T>().pack(shape.k, shape.n, b, static_cast<T*>(scratch), threads, true);
  char* rest = static_cast<char*>(scratch) + packed_b_bytes<T>(shape.k, shape.n);
  gemm_packed_as<T>(shape, a, scratch, c, epilogue, rest, threads);
}

#define PLIMSOLL_GEMM(T)                                                                                    \
  template int packed_b_format<T>();                                                                        \
  template size_t packed_b_bytes<T>(int64_t, int64_t);                                                      \
  template void pack_b<T>(int64_t, int64_t, GemmRight, void*, int);                                         \
  template size_t gemm_scratch_bytes<T>(GemmShape, int64_t, int64_t, int);                                  \
  template size_t gemm_most_scratch_bytes<T>(int64_t, int);                                                 \
  template void gemm_packed_as<T>(GemmShape, GemmLeft<T>, const void*, GemmOutput<T>,                       \
                                  const GemmEpilogue<T>&, void*, int);                                      \
  template size_t gemm_dynamic_scratch_bytes<T>(GemmShape, int64_t, int64_t, int);                          \
  template void gemm_as<T>(GemmShape, GemmLeft<T>, GemmRight, GemmOutput<T>, const GemmEpilogue<T>&, void*, \
                           int)
PLIMSOLL_GEMM(float);
PLIMSOLL_GEMM(double);
PLIMSOLL_GEMM(Float16);
PLIMSOLL_GEMM(BFloat16);
#undef PLIMSOLL_GEMM

}  // namespace plimsoll::kernels
