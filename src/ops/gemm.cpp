#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<MatMulAttrs>();
  a->alpha = c.real("alpha", 1.0f);
  a->beta = c.real("beta", 1.0f);
  a->trans_a = c.integer("transA", 0) != 0;
  a->trans_b = c.integer("transB", 0) != 0;
  c.ignore("broadcast");  // before opset 7; the rule is the same
  return a;
}

void infer(InferContext& c) {
  c.expect_rank(kMatMulA, 2, 2);
  c.expect_rank(kMatMulB, 2, 2);
  infer_matmul(c);
  if (!c.has_input(kMatMulBias) || !c.ranked(kMatMulBias) || !c.output(0).type.ranked) return;
  c.expect_rank(kMatMulBias, 0, 2);
  const auto bias = c.dims(kMatMulBias), out = c.output(0).type.dims;
  for (size_t i = 0; i < bias.size(); ++i) {
    const Dim own = bias[bias.size() - 1 - i], target = out[1 - i];
    if (own.is_constant() && target.is_constant() && own.value() != 1 && !(own == target))
      c.reject("C of shape {} cannot be broadcast to {}", to_string(bias), to_string(out));
  }
}

}  // namespace

extern const OpDef op_gemm = {
    .name = "Gemm",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select_matmul,
    .pack = pack_matmul,
    .run = run_matmul,
    .cost = cost_matmul,
    .region = region_matmul,
};

}  // namespace plimsoll
