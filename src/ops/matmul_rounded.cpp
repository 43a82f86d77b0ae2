// Products of a constant matrix in bfloat16 (kernels/rounded_gemm.h), where the attribute `rounded` asks for
// it.
#include "kernels/rounded_gemm.h"
#include "ops/matmul_common.h"

namespace plimsoll {

bool select_rounded_matmul(SelectContext& c, bool concrete, MatMulChoice& choice) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const bool is_fit = attrs.rounded && c.type(kMatMulA) == ElementType::kFloat && c.ranked(kMatMulB) &&
                      c.rank(kMatMulB) == 2 && c.input(kMatMulB).is_concrete();
  if (!is_fit) return false;
  choice.kernel = MatMulKernel::kRounded;
  const MatMulRight b = right_of(c);
  const auto bytes = static_cast<int64_t>(kernels::rounded_b_bytes(b.k, b.n));
  choice.packed = c.pack(kMatMulB, {"rounded_b", {is_swapped(attrs)}}, bytes);
  const MatMulGeometry& g = choice.geometry;
  c.scratch(static_cast<int64_t>(concrete ? kernels::rounded_scratch_bytes({g.m, g.k, g.n}, c.threads)
                                          : kernels::rounded_most_scratch_bytes(b.k, c.threads)));
  if (!choice.packed) choice.packed_at = c.scratch(bytes);
  return true;
}

void pack_rounded_matmul(const PackContext& c) {
  const MatMulRight b = right_of(c);
  kernels::pack_rounded_b(b.k, b.n, {c.raw.data, b.row_stride, b.col_stride}, c.destination);
}

void run_rounded_matmul(const RunContext& c, const MatMulAttrs& attrs, const MatMulChoice& choice) {
  const MatMulGeometry& g = choice.geometry;
  const std::byte* b = c.inputs[kMatMulB].data;
  if (!choice.packed) {
    kernels::pack_rounded_b(g.k, g.n, {b, g.b_row, g.b_col}, c.scratch + choice.packed_at, c.threads);
    b = c.scratch + choice.packed_at;
  }
  kernels::GemmEpilogue<> epilogue;
  epilogue.alpha = attrs.alpha;
  epilogue.activation = attrs.activation;
  epilogue.addend_stride = g.y_row;
  if (c.has_input(kMatMulBias)) epilogue.bias = c.inputs[kMatMulBias].as<float>();
  for (int64_t batch = 0; batch < g.batches; ++batch) {
    const MatMulOffsets at = offsets_of(g, batch);
    if (c.has_input(kMatMulAddend)) epilogue.addend = c.inputs[kMatMulAddend].as<float>() + at.y;
    kernels::rounded_gemm({g.m, g.k, g.n}, {c.inputs[kMatMulA].as<float>() + at.a, g.a_row, g.a_col}, b,
                          {c.outputs[0].as<float>() + at.y, g.y_row}, epilogue, c.scratch, c.threads);
  }
}

}  // namespace plimsoll
