// Pad whose pads may stand in a row of a matrix.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_pad;

namespace {

constexpr int kVersion = 13;

const void* attrs(AttrContext& c) {
  c.text("mode", "constant");
  return nullptr;
}

void infer(InferContext& c) {
  std::vector<Facts> inputs = facts_of_inputs(c);
  c.expect_rank(1, 1, 2);
  if (c.ranked(1) && c.rank(1) == 2) {
    const Dim rows = c.dims(1)[0];
    if (rows.is_constant() && rows.value() != 1)
      c.reject("pads: expected one row, found shape {}", to_string(c.dims(1)));
    inputs[1].type.dims = inputs[1].type.dims.last(1);
  }
  const AttributeList list = attributes_of(c.node(), c.arena());
  infer_as(c, op_pad, "", kVersion, inputs, list.list());
}

void decompose(DecomposeContext& c) {
  Edge* pads = c.in(1);
  if (!c.ranked(1) || c.rank(1) != 1) pads = c.op("Reshape", {pads, c.build.integers({-1})});
  const AttributeList list = attributes_of(c.node(), c.build.graph().arena());
  Edge* const inputs[] = {c.in(0), pads, c.in(2)};
  c.build.emit_into(c.node().outputs, "", "Pad", inputs, list.list())->opset = kVersion;
}

}  // namespace

extern const OpDef op_microsoft_pad = {.domain = kMicrosoftDomain,
                                       .name = "Pad",
                                       .inputs = {2, 3},
                                       .attrs = attrs,
                                       .infer = infer,
                                       .decompose = decompose};

}  // namespace plimsoll
