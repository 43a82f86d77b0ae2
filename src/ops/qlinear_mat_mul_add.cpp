// QLinearMatMulAdd: QLinearMatMul with a bias or a residual of bytes behind it; see qlinear_mat_mul.h.
#include "ops/qlinear_mat_mul.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_qlinear_mat_mul(c);
  c.expect_type(kQMatMulZ, kByteTypes);
  c.expect_same_type(kQMatMulZ, kQMatMulZZero);
  c.expect_type(kQMatMulSumZero, kByteTypes);
  for (size_t i : {kQMatMulZScale, kQMatMulSumScale}) c.expect_type(i, types(ElementType::kFloat));
  for (size_t i : {kQMatMulZScale, kQMatMulZZero, kQMatMulSumScale, kQMatMulSumZero}) {
    const Dim count = c.ranked(i) ? product(c.dims(i)) : Dim(1);
    if (count.is_constant() && count.value() != 1)
      c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
  }
  if (!kByteTypes.contains(c.type(0)) || !kByteTypes.contains(c.type(3)) ||
      c.output(0).type.type != c.type(kQMatMulSumZero))
    c.reject("expected bytes, and a sum of the type of the product");
  if (!c.ranked(kQMatMulZ) || !c.output(0).type.ranked) return;
  const std::span<const Dim> y = c.output(0).type.dims;
  const Dim found = product(c.dims(kQMatMulZ)), all = product(y);
  if (y.empty() || (found.is_constant() && all.is_constant() && y.back().is_constant() && !(found == all) &&
                    !(found == y.back())))
    c.reject("input {}: expected shape {} or one row of it, found {}", kQMatMulZ, to_string(y),
             to_string(c.dims(kQMatMulZ)));
}

void alias(AliasContext& c) {
  c.overwrite(kQMatMulZ);
}

}  // namespace

extern const OpDef op_qlinear_mat_mul_add = {
    .domain = kPlimsollDomain,
    .name = "QLinearMatMulAdd",
    .inputs = {13, 13},
    .infer = infer,
    .alias = alias,
    .select = select_qlinear_mat_mul,
    .pack = pack_qlinear_mat_mul,
    .run = run_qlinear_mat_mul,
    .cost = cost_qlinear_mat_mul,
};

}  // namespace plimsoll
