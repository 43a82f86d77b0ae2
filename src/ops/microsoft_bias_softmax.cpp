#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

struct BiasSoftmaxAttrs {
  int64_t axis = 1;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<BiasSoftmaxAttrs>();
  a->axis = c.integer("axis", 1);
  c.integer("is_inner_broadcast");  // which of the bias's dimensions are 1 says the same
  return a;
}

void infer(InferContext& c) {
  infer_like_first(c, kFloatTypes, {1});
  if (!c.ranked(0)) return;
  c.axis(c.attrs<BiasSoftmaxAttrs>().axis, c.rank(0));
  if (!c.ranked(1)) return;
  const auto sum = c.broadcast(c.dims(0), c.dims(1));
  const auto x = c.dims(0);
  bool same = sum.size() == x.size();
  for (size_t i = 0; same && i < sum.size(); ++i)
    same = !sum[i].is_constant() || !x[i].is_constant() || sum[i] == x[i];
  if (!same) c.reject("a bias of shape {} is larger than the data", to_string(c.dims(1)));
}

// All dimensions from the axis on are one row, as Softmax had it before opset 13.
void decompose(DecomposeContext& c) {
  Edge* const sum[] = {c.op("Add", {c.in(0), c.in(1)})};
  Node* softmax = c.build.emit_into(c.node().outputs, "", "Softmax", sum,
                                    c.attributes().set("axis", c.attrs<BiasSoftmaxAttrs>().axis).list());
  softmax->opset = 11;
}

}  // namespace

extern const OpDef op_microsoft_bias_softmax = {.domain = kMicrosoftDomain,
                                                .name = "BiasSoftmax",
                                                .inputs = {2, 2},
                                                .attrs = attrs,
                                                .infer = infer,
                                                .decompose = decompose};

}  // namespace plimsoll
