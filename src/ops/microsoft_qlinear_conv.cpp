// QLinearConv whose channels may come last in x and y.
#include <numeric>

#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_qlinear_conv;

namespace {

struct LayoutAttrs {
  bool channels_last = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<LayoutAttrs>();
  a->channels_last = c.integer("channels_last", 0) != 0;
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
    c.ignore(name);
  return a;
}

AttributeList conv_attributes(const Node& node, BumpArena& arena) {
  AttributeList list = attributes_of(node, arena);
  list.erase("channels_last");
  return list;
}

void infer(InferContext& c) {
  const bool last = c.attrs<LayoutAttrs>().channels_last;
  std::vector<Facts> inputs = facts_of_inputs(c);
  inputs[0].constant = nullptr;
  if (last && c.ranked(0)) {
    c.expect_rank(0, 3, InferContext::kMaxRank);
    std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
    dims.insert(dims.begin() + 1, dims.back());
    dims.pop_back();
    inputs[0].type.dims = c.arena().copy(dims);
  }
  infer_as(c, op_qlinear_conv, "", 10, inputs, conv_attributes(c.node(), c.arena()).list());
  const TypeInfo made = c.output(0).type;
  if (!last || !made.ranked) return;
  std::vector<Dim> dims(made.dims.begin(), made.dims.end());
  dims.push_back(dims[1]);
  dims.erase(dims.begin() + 1);
  c.set_output(0, made.type, dims);
}

void decompose(DecomposeContext& c) {
  const AttributeList list = conv_attributes(c.node(), c.build.graph().arena());
  if (!c.attrs<LayoutAttrs>().channels_last) {
    c.build.emit_into(c.node().outputs, "", "QLinearConv", c.node().inputs, list.list());
    return;
  }
  if (!c.ranked(0)) fail(ErrorCode::kNotImplemented, "{}: an input whose rank is unknown", c.node().label());
  std::vector<int64_t> first(c.rank(0)), last(c.rank(0));  // orders that put channels there
  std::iota(first.begin() + 2, first.end(), 1);
  first[1] = static_cast<int64_t>(c.rank(0)) - 1;
  std::iota(last.begin() + 1, last.end() - 1, 2);
  last.back() = 1;
  std::vector<Edge*> inputs(c.node().inputs.begin(), c.node().inputs.end());
  inputs[0] = c.op("Transpose", {inputs[0]}, c.attributes().set("perm", first));
  Edge* y = c.build.emit("", "QLinearConv", inputs, list.list())->outputs[0];
  c.op_into(0, "Transpose", {y}, c.attributes().set("perm", last));
}

}  // namespace

extern const OpDef op_microsoft_qlinear_conv = {.domain = kMicrosoftDomain,
                                                .name = "QLinearConv",
                                                .inputs = {8, 9},
                                                .attrs = attrs,
                                                .infer = infer,
                                                .decompose = decompose};

}  // namespace plimsoll
