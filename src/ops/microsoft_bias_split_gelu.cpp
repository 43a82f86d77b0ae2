// The first half of X + bias times Gelu of the second.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {1});
  c.expect_rank(0, 3, 3);
  expect_last_dimension(c, 1);
  if (!c.ranked(0)) return;
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  if (dims[2].is_constant() && dims[2].value() % 2 != 0)
    c.reject("{} elements cannot be divided into two halves", dims[2].value());
  dims[2] = floor_div(dims[2], Dim(2));
  c.set_output(0, c.type(0), dims);
}

void decompose(DecomposeContext& c) {
  Edge* const sum[] = {c.op("Add", {c.in(0), c.in(1)})};
  const Node* halves = c.build.emit(
      "", "Split", sum, c.attributes().set("axis", int64_t{-1}).set("num_outputs", int64_t{2}).list(), 2);
  c.op_into(0, "Mul", {halves->outputs[0], c.op("Gelu", {halves->outputs[1]})});
}

}  // namespace

extern const OpDef op_microsoft_bias_split_gelu = {.domain = kMicrosoftDomain,
                                                   .name = "BiasSplitGelu",
                                                   .inputs = {2, 2},
                                                   .infer = infer,
                                                   .decompose = decompose};

}  // namespace plimsoll
