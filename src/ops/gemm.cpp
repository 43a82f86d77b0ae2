#include "graph/gradient.h"
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

void gradient(GradientContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const auto product = [&](Edge* a, Edge* b, bool trans_a, bool trans_b) {
    return c.own_op("FusedMatMul", {a, b},
                    c.attributes()
                        .set("alpha", attrs.alpha)
                        .set("trans_a", int64_t{trans_a})
                        .set("trans_b", int64_t{trans_b}));
  };
  Edge *a = c.in(kMatMulA), *b = c.in(kMatMulB), *dy = c.gradient();
  if (c.wants(kMatMulA))
    c.set(kMatMulA,
          attrs.trans_a ? product(b, dy, attrs.trans_b, true) : product(dy, b, false, !attrs.trans_b));
  if (c.wants(kMatMulB))
    c.set(kMatMulB,
          attrs.trans_b ? product(dy, a, true, attrs.trans_a) : product(a, dy, !attrs.trans_a, false));
  if (!c.wants(kMatMulBias)) return;
  Edge* bias = c.summed_to(dy, c.in(kMatMulBias));
  c.set(kMatMulBias, attrs.beta == 1 ? bias : c.op("Mul", {bias, c.scalar(double{attrs.beta})}));
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
    .gradient = gradient,
};

}  // namespace plimsoll
