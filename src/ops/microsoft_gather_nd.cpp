// GatherND whose indices may be int32 too.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_gather_nd;

namespace {

void infer(InferContext& c) {
  c.expect_type(1, kIndexTypes);
  std::vector<Facts> inputs = facts_of_inputs(c);
  inputs[1].type.type = ElementType::kInt64;
  inputs[1].constant = nullptr;
  infer_as(c, op_gather_nd, "", 13, inputs, {});
}

void decompose(DecomposeContext& c) {
  Edge* indices = c.in(1);
  if (c.type(1) != ElementType::kInt64)
    indices = c.op("Cast", {indices}, c.attributes().set("to", int64_t{7}));
  c.op_into(0, "GatherND", {c.in(0), indices});
}

}  // namespace

extern const OpDef op_microsoft_gather_nd = {
    .domain = kMicrosoftDomain, .name = "GatherND", .inputs = {2, 2}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
