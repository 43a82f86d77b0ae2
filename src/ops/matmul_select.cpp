#include "kernels/gemm.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

// B as one matrix of k rows and n columns, by its strides.
struct Matrix {
  int64_t k = 0, n = 0, row_stride = 0, col_stride = 0;
};

bool is_swapped(const MatMulAttrs& a) {
  return a.trans_b != (!a.perm_b.empty() && a.perm_b[0] == 1);
}

Matrix matrix_of(const NodeContext& c) {
  const int64_t rows = c.dims(kMatMulB)[0].value(), cols = c.dims(kMatMulB)[1].value();
  return is_swapped(c.attrs<MatMulAttrs>()) ? Matrix{cols, rows, 1, cols} : Matrix{rows, cols, cols, 1};
}

bool ask_for_packed(const SelectContext& c) {
  if (!c.input(kMatMulB).is_concrete() || c.rank(kMatMulB) != 2) return false;
  const Matrix b = matrix_of(c);
  const PackFormat format{"gemm_b", {kernels::packed_b_format(), is_swapped(c.attrs<MatMulAttrs>())}};
  return c.pack(kMatMulB, format, static_cast<int64_t>(kernels::packed_b_bytes(b.k, b.n)));
}

// A bound for all sizes of A: B as every thread packs it.
Dim packing_bound(const SelectContext& c) {
  if (!c.ranked(kMatMulB) || c.rank(kMatMulB) < 2) return 0;
  const auto& attrs = c.attrs<MatMulAttrs>();
  const std::vector<Dim> b = seen_dims(c.dims(kMatMulB), attrs.perm_b, attrs.trans_b, false);
  const Dim panel = kernels::packed_b_format();
  return Dim(c.threads) * b[b.size() - 2] * ceil_div(b.back(), panel) * panel * Dim(4);
}

int64_t product_scratch(const MatMulGeometry& g, bool packed, int threads) {
  const kernels::GemmShape shape{g.m, g.k, g.n};
  const size_t bytes = packed ? kernels::gemm_scratch_bytes(shape, g.a_row, g.a_col, threads)
                              : kernels::gemm_dynamic_scratch_bytes(shape, g.a_row, g.a_col, threads);
  return round_up(static_cast<int64_t>(bytes), SelectContext::kScratchAlignment);
}

}  // namespace

const void* select_matmul(SelectContext& c) {
  auto* choice = c.make<MatMulChoice>();
  const bool concrete = c.input(kMatMulA).is_concrete() && c.input(kMatMulB).is_concrete();
  if (concrete) choice->geometry = make_geometry(c);
  if (c.type(kMatMulA) != ElementType::kFloat) return choice;
  choice->kernel = MatMulKernel::kGemm;
  choice->packed = ask_for_packed(c);
  if (!concrete) {
    if (!choice->packed) c.scratch(packing_bound(c));
    return choice;
  }
  const MatMulGeometry& g = choice->geometry;
  choice->tasks = c.threads > 1 && g.batches >= c.threads ? c.threads : 1;
  choice->task_scratch = product_scratch(g, choice->packed, choice->tasks > 1 ? 1 : c.threads);
  c.scratch(checked_mul(choice->task_scratch, choice->tasks));
  return choice;
}

void pack_matmul(const PackContext& c) {
  const Matrix b = matrix_of(c);
  kernels::pack_b(b.k, b.n, {c.raw.data, b.row_stride, b.col_stride}, c.destination);
}

}  // namespace plimsoll
