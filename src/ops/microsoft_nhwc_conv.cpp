// Channels come last in X and Y; W is as ONNX has it.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_fused_conv;

namespace {

void infer(InferContext& c) {
  AttributeList list = attributes_of(c.node(), c.arena());
  infer_as(c, op_fused_conv, kPlimsollDomain, 1, facts_of_inputs(c),
           list.set("channels_last", int64_t{1}).list());
}

void decompose(DecomposeContext& c) {
  AttributeList list = attributes_of(c.node(), c.build.graph().arena());
  c.build.emit_into(c.node().outputs, kPlimsollDomain, "FusedConv", c.node().inputs,
                    list.set("channels_last", int64_t{1}).list());
}

const void* attrs(AttrContext& c) {
  return op_fused_conv.attrs(c);
}

}  // namespace

extern const OpDef op_microsoft_nhwc_conv = {.domain = kMicrosoftDomain,
                                             .name = "NhwcConv",
                                             .inputs = {2, 4},
                                             .attrs = attrs,
                                             .infer = infer,
                                             .decompose = decompose};

}  // namespace plimsoll
