#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kBeamWidth = 8;

const void* attrs(AttrContext& c) {
  auto* a = c.make<MultiHeadAttrs>();
  a->at.padding = 3, a->at.mask = 4;
  a->at.past_key = 5, a->at.past_value = 6, a->at.past_length = 7, a->at.beams = 9, a->at.bias = 10;
  read_multi_head(c, *a);
  a->shares = c.integer("past_present_share_buffer", 0) != 0;
  a->one_query = true;
  c.ignore("output_qk");  // whether output 3 is there says the same
  return a;
}

void infer(InferContext& c) {
  if (c.has_input(kBeamWidth)) c.expect_type(kBeamWidth, types(ElementType::kInt32));
  infer_multi_head(c);
}

}  // namespace

extern const OpDef op_microsoft_decoder_masked_multi_head_attention = {
    .domain = kMicrosoftDomain,
    .name = "DecoderMaskedMultiHeadAttention",
    .inputs = {1, 11},
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_multi_head,
    .select = select_multi_head,
    .run = run_multi_head,
    .cost = cost_multi_head,
};

}  // namespace plimsoll
