// ConvTranspose whose pads are an input.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {

extern const OpDef op_conv_transpose;

namespace {

constexpr size_t kX = 0, kW = 1, kPads = 2, kBias = 3;

const void* attrs(AttrContext& c) {
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"})
    c.ignore(name);
  return nullptr;
}

bool pads_are_known(const NodeContext& c) {
  return !c.has_input(kPads) || c.integers(kPads);
}
// Without pads where only a run knows them: they are cut off behind it.
AttributeList attributes_with_pads(const NodeContext& c, BumpArena& arena) {
  AttributeList list = attributes_of(c.node(), arena);
  return c.has_input(kPads) && pads_are_known(c) ? list.set("pads", *c.integers(kPads)) : list;
}

void infer(InferContext& c) {
  if (c.has_input(kPads)) {
    c.expect_type(kPads, types(ElementType::kInt64));
    c.expect_rank(kPads, 1, 1);
  }
  std::vector<Facts> inputs{c.input(kX), c.input(kW)};
  if (c.has_input(kBias)) inputs.push_back(c.input(kBias));
  infer_as(c, op_conv_transpose, "", 11, inputs, attributes_with_pads(c, c.arena()).list());
  const TypeInfo whole = c.output(0).type;
  if (pads_are_known(c) || !whole.ranked) return;
  const auto length = known_length(c, kPads);
  if (length && *length != 2 * (whole.rank() - 2))
    c.reject("input {}: expected {} pads, found {}", kPads, 2 * (whole.rank() - 2), *length);
  std::vector<Dim> dims(whole.dims.begin(), whole.dims.end());
  for (size_t i = 2; i < dims.size(); ++i) dims[i] = c.unknown("");
  c.set_output(0, whole.type, dims);
}

void decompose(DecomposeContext& c) {
  std::vector<Edge*> inputs{c.in(kX), c.in(kW)};
  if (c.in(kBias) != nullptr) inputs.push_back(c.in(kBias));
  const AttributeList attributes = attributes_with_pads(c, c.build.graph().arena());
  if (pads_are_known(c)) {
    c.build.emit_into(c.node().outputs, "", "ConvTranspose", inputs, attributes.list());
    return;
  }
  Edge* whole = c.build.emit("", "ConvTranspose", inputs, attributes.list())->outputs[0];
  Edge* const pads[] = {c.in(kPads)};
  const Node* halves = c.build.emit(
      "", "Split", pads, c.attributes().set("axis", int64_t{0}).set("num_outputs", int64_t{2}).list(), 2);
  const auto with_outer = [&](Edge* half) {
    return c.op("Concat", {c.build.integers({0, 0}), half}, c.attributes().set("axis", int64_t{0}));
  };
  Edge* ends = c.op("Sub", {c.op("Shape", {whole}), with_outer(halves->outputs[1])});
  c.op_into(0, "Slice", {whole, with_outer(halves->outputs[0]), ends});
}

}  // namespace

extern const OpDef op_microsoft_conv_transpose_with_dynamic_pads = {.domain = kMicrosoftDomain,
                                                                    .name = "ConvTransposeWithDynamicPads",
                                                                    .inputs = {2, 4},
                                                                    .attrs = attrs,
                                                                    .infer = infer,
                                                                    .decompose = decompose};

}  // namespace plimsoll
