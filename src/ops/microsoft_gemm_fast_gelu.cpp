#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_mat_mul;

namespace {

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
  for (size_t i : {1, 2}) {
    if (c.has_input(i)) c.expect_same_type(0, i);
  }
  const std::vector<Facts> factors = {c.input(0), c.input(1)};
  infer_as(c, op_mat_mul, "", 13, factors, {});
  if (!c.has_input(2)) return;
  c.expect_rank(2, 1, 1);
  if (!c.output(0).type.ranked || c.output(0).type.rank() == 0 || !c.ranked(2)) return;
  const Dim columns = c.output(0).type.dims.back(), found = c.dims(2)[0];
  if (columns.is_constant() && found.is_constant() && !(columns == found))
    c.reject("input 2: expected {} elements, found {}", columns.value(), found.value());
}

void decompose(DecomposeContext& c) {
  Edge* x = c.op("MatMul", {c.in(0), c.in(1)});
  if (c.in(2) != nullptr) x = c.op("Add", {x, c.in(2)});
  c.op_into(0, "Gelu", {x}, c.attributes().set("approximate", "tanh"));
}

}  // namespace

extern const OpDef op_microsoft_gemm_fast_gelu = {.domain = kMicrosoftDomain,
                                                  .name = "GemmFastGelu",
                                                  .inputs = {2, 3},
                                                  .infer = infer,
                                                  .decompose = decompose};

}  // namespace plimsoll
