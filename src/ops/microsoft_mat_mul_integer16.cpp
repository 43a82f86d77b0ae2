#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_mat_mul;

namespace {

void infer(InferContext& c) {
  std::vector<Facts> inputs = facts_of_inputs(c);
  for (size_t i : {size_t{0}, size_t{1}}) {
    c.expect_type(i, types(ElementType::kInt16));
    inputs[i].type.type = ElementType::kInt32;
    inputs[i].constant = nullptr;  // of the narrower type
  }
  infer_as(c, op_mat_mul, "", 13, inputs, {});
}

void decompose(DecomposeContext& c) {
  const auto wide = [&](size_t i) {
    return c.op("Cast", {c.in(i)}, c.attributes().set("to", static_cast<int64_t>(ElementType::kInt32)));
  };
  c.op_into(0, "MatMul", {wide(0), wide(1)});
}

}  // namespace

extern const OpDef op_microsoft_mat_mul_integer16 = {.domain = kMicrosoftDomain,
                                                     .name = "MatMulInteger16",
                                                     .inputs = {2, 2},
                                                     .infer = infer,
                                                     .decompose = decompose};

}  // namespace plimsoll
