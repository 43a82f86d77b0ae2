#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<MultiHeadAttrs>();
  a->at.bias = 3, a->at.padding = 4, a->at.mask = 5;
  a->at.past_key = 6, a->at.past_value = 7, a->at.past_length = 8, a->at.beams = 9;
  read_multi_head(c, *a);
  a->causal = c.integer("unidirectional", 0) == 1;
  a->shares = c.node().input(a->at.past_length) != nullptr;
  return a;
}

}  // namespace

extern const OpDef op_microsoft_multi_head_attention = {
    .domain = kMicrosoftDomain,
    .name = "MultiHeadAttention",
    .inputs = {1, 10},
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer_multi_head,
    .alias = alias_multi_head,
    .select = select_multi_head,
    .run = run_multi_head,
    .cost = cost_multi_head,
    .gradient = gradient_multi_head,
};

}  // namespace plimsoll
