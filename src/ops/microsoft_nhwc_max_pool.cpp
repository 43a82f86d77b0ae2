#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_max_pool;

namespace {

constexpr int kVersion = 12;

const void* attrs(AttrContext& c) {
  for (const char* name : {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"})
    c.ignore(name);
  return nullptr;
}

void infer(InferContext& c) {
  AttributeList list = attributes_of(c.node(), c.arena());
  infer_as(c, op_max_pool, kPlimsollDomain, kVersion, facts_of_inputs(c),
           list.set("channels_last", int64_t{1}).list());
}

void decompose(DecomposeContext& c) {
  AttributeList list = attributes_of(c.node(), c.build.graph().arena());
  Node* pool = c.build.emit_into(c.node().outputs, kPlimsollDomain, "MaxPool", c.node().inputs,
                                 list.set("channels_last", int64_t{1}).list());
  pool->opset = kVersion;
}

}  // namespace

extern const OpDef op_microsoft_nhwc_max_pool = {.domain = kMicrosoftDomain,
                                                 .name = "NhwcMaxPool",
                                                 .attrs = attrs,
                                                 .infer = infer,
                                                 .decompose = decompose};

}  // namespace plimsoll
