// ConvTranspose whose pads are an input, which the model must know.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_conv_transpose;

namespace {

constexpr size_t kX = 0, kW = 1, kPads = 2, kBias = 3;

const void* attrs(AttrContext& c) {
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"})
    c.ignore(name);
  return nullptr;
}

AttributeList with_pads(const NodeContext& c, BumpArena& arena) {
  AttributeList list = attributes_of(c.node(), arena);
  if (!c.has_input(kPads)) return list;
  const auto pads = c.integers(kPads);
  if (!pads) fail(ErrorCode::kNotImplemented, "{}: pads that are not part of the model", c.node().label());
  return list.set("pads", *pads);
}

void infer(InferContext& c) {
  if (c.has_input(kPads)) c.expect_type(kPads, types(ElementType::kInt64));
  std::vector<Facts> inputs{c.input(kX), c.input(kW)};
  if (c.has_input(kBias)) inputs.push_back(c.input(kBias));
  infer_as(c, op_conv_transpose, "", 11, inputs, with_pads(c, c.arena()).list());
}

void decompose(DecomposeContext& c) {
  std::vector<Edge*> inputs{c.in(kX), c.in(kW)};
  if (c.in(kBias) != nullptr) inputs.push_back(c.in(kBias));
  c.build.emit_into(c.node().outputs, "", "ConvTranspose", inputs,
                    with_pads(c, c.build.graph().arena()).list());
}

}  // namespace

extern const OpDef op_microsoft_conv_transpose_with_dynamic_pads = {.domain = kMicrosoftDomain,
                                                                    .name = "ConvTransposeWithDynamicPads",
                                                                    .inputs = {2, 4},
                                                                    .attrs = attrs,
                                                                    .infer = infer,
                                                                    .decompose = decompose};

}  // namespace plimsoll
