// Other operators between DequantizeLinear and QuantizeLinear: those that only move elements work on the
// integers; sums, products, means and Softmax have forms of their own.
#include <algorithm>

#include "optimize/quantized.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// ---- data movement -----------------------------------------------------------------------------------

// Its first input's elements come out, and nothing else.
bool moves_elements(const Node& node) {
  constexpr std::string_view kOps[] = {"DepthToSpace", "Expand",  "Flatten",   "Gather",   "GatherElements",
                                       "GatherND",     "Reshape", "Slice",     "Split",    "SpaceToDepth",
                                       "Squeeze",      "Tile",    "Transpose", "Unsqueeze"};
  if (!node.domain.empty()) return false;
  if (is_op(&node, "MaxPool"))
    return node.opset >= 12 && (node.outputs.size() < 2 || node.outputs[1] == nullptr);
  if (is_op(&node, "Resize")) {
    const Attribute* mode = node.attribute("mode");
    const Attribute* place = node.attribute("coordinate_transformation_mode");
    return node.opset >= 11 && (mode == nullptr || mode->s == "nearest") &&
           (place == nullptr || place->s != "tf_crop_and_resize");
  }
  return std::find(std::begin(kOps), std::end(kOps), node.op_type) != std::end(kOps);
}

std::vector<Edge*> inputs_with(const Node& node, Edge* first) {
  std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = first;
  return inputs;
}

// Every output is quantized as the input was.
bool keeps_quantization(const Node& node, const QuantizedValue& x, const Editor& editor) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](const Edge* y) {
    const Node* q = y != nullptr ? only_quantizer(*y, editor) : nullptr;
    return q != nullptr && same_quantization(x, quantized(q));
  });
}

// The output of the node becomes one of integers, which `user` makes `y` of.
Edge* integer_output(Node& node, size_t i, ElementType type, Editor& editor) {
  Edge* raw = editor.renew_output(node, i);
  raw->facts.type.type = type;
  raw->facts.values.reset();
  raw->facts.constant = nullptr;
  return raw;
}

void move_integers(Node& node, Editor& editor) {
  const QuantizedValue x = whole_dequantized(node.input(0));
  if (!x) return;
  const Node* maker = node.inputs[0]->producer;
  if (keeps_quantization(node, x, editor)) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Node* q = editor.only_user(*node.outputs[i]);
      Edge* raw = integer_output(node, i, x.type(), editor);
      editor.become(*q, "", "Identity", {raw}, {});
    }
    editor.become(node, node.domain, node.op_type, inputs_with(node, x.q), node.attributes);
    return;
  }
  // A row of a table, or a view: integers until floats are needed.
  const bool is_table = is_constant(x.q);
  if (node.outputs.size() != 1 || (is_table && node.op_type != "Gather") ||
      (!is_table && editor.use_count(*node.inputs[0]) != 1))
    return;
  Edge* y = node.outputs[0];
  Edge* raw = integer_output(node, 0, x.type(), editor);
  editor.insert_after(node, maker->domain, "DequantizeLinear", {raw, x.scale, x.zero}, {}, y);
  editor.become(node, node.domain, node.op_type, inputs_with(node, x.q), node.attributes);
}

// ---- arithmetic --------------------------------------------------------------------------------------

void fuse_binary(Node& node, std::string_view name, Editor& editor) {
  const QuantizedValue a = whole_dequantized(node.input(0)), b = whole_dequantized(node.input(1));
  Node* q = a && b ? only_quantizer(*node.outputs[0], editor) : nullptr;
  if (q == nullptr || node.opset < 7) return;
  const QuantizedValue y = quantized(q);
  if (a.type() != b.type() || a.type() != y.type()) return;
  editor.become(
      *q, kMicrosoftDomain, name,
      {a.q, a.scale, zero_edge(a, editor), b.q, b.scale, zero_edge(b, editor), y.scale, zero_edge(y, editor)},
      {});
}

void fuse_concat(Node& node, Editor& editor) {
  Node* q = only_quantizer(*node.outputs[0], editor);
  if (q == nullptr || node.opset < 4) return;
  const QuantizedValue y = quantized(q);
  std::vector<Edge*> all = {y.scale, zero_edge(y, editor)}, plain;
  bool is_same = true;
  for (const Edge* input : node.inputs) {
    const QuantizedValue x = whole_dequantized(input);
    if (!x || x.type() != y.type()) return;
    is_same = is_same && same_quantization(x, y);
    plain.push_back(x.q);
    for (Edge* edge : {x.q, x.scale, zero_edge(x, editor)}) all.push_back(edge);
  }
  if (is_same) {
    editor.become(*q, "", "Concat", plain, node.attributes);
  } else {
    editor.become(*q, kMicrosoftDomain, "QLinearConcat", all, node.attributes);
  }
}

// X, its scale, zero point, Y's scale, zero point.
void fuse_unary(Node& node, std::string_view name, const AttributeList& attributes, Editor& editor) {
  const QuantizedValue x = whole_dequantized(node.input(0));
  Node* q = x ? only_quantizer(*node.outputs[0], editor) : nullptr;
  if (q == nullptr || quantized(q).type() != x.type()) return;
  const QuantizedValue y = quantized(q);
  editor.become(*q, kMicrosoftDomain, name,
                {x.q, x.scale, zero_edge(x, editor), y.scale, zero_edge(y, editor)}, attributes.list());
}

// Interpolation; nearest moves elements.
void fuse_resize(Node& node, const AttributeList& attributes, Editor& editor) {
  const QuantizedValue x = whole_dequantized(node.input(0));
  const Attribute *mode = node.attribute("mode"), *place = node.attribute("coordinate_transformation_mode");
  Node* q = x ? only_quantizer(*node.outputs[0], editor) : nullptr;
  if (q == nullptr || node.opset < 11 || mode == nullptr || mode->s == "nearest" ||
      (place != nullptr && place->s == "tf_crop_and_resize"))
    return;
  const QuantizedValue y = quantized(q);
  if (y.type() != x.type()) return;
  editor.become(
      *q, kPlimsollDomain, "QLinearResize",
      {x.q, x.scale, zero_edge(x, editor), y.scale, zero_edge(y, editor), node.input(2), node.input(3)},
      attributes.list());
}

// Over the last axis, with numbers for every element of it.
void fuse_layer_norm(Node& node, Editor& editor) {
  const QuantizedValue x = whole_dequantized(node.input(0));
  const int64_t rank = rank_of(node.input(0)), axis = attribute_or(node, "axis", int64_t{-1});
  if (!x || rank < 1 || (axis != -1 && axis != rank - 1) || node.outputs.size() > 1) return;
  Node* q = only_quantizer(*node.outputs[0], editor);
  const Dim cols = x.q->facts.type.dims.back();
  for (size_t i : {1, 2}) {
    const Edge* edge = node.input(i);
    if (edge == nullptr) continue;
    if (!edge->facts.type.ranked || edge->facts.type.type != ElementType::kFloat ||
        !(product(edge->facts.type.dims) == cols))
      return;
  }
  if (q == nullptr) return;
  const QuantizedValue y = quantized(q);
  AttributeList attributes(editor.arena());
  attributes.set("epsilon", attribute_or(node, "epsilon", 1e-5f));
  editor.become(
      *q, kPlimsollDomain, "QLinearLayerNormalization",
      {x.q, x.scale, zero_edge(x, editor), node.input(1), node.input(2), y.scale, zero_edge(y, editor)},
      attributes.list());
}

void fuse(Node& node, Editor& editor) {
  if (moves_elements(node)) return move_integers(node, editor);
  if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == nullptr) return;
  AttributeList attributes(editor.arena(), node);
  if (node.op_type == "Add") return fuse_binary(node, "QLinearAdd", editor);
  if (node.op_type == "Mul") return fuse_binary(node, "QLinearMul", editor);
  if (node.op_type == "Concat") return fuse_concat(node, editor);
  if (node.op_type == "GlobalAveragePool" && rank_of(node.input(0)) >= 3)
    return fuse_unary(node, "QLinearGlobalAveragePool", attributes, editor);
  if (node.op_type == "AveragePool" && node.attribute("dilations") == nullptr)
    return fuse_unary(node, "QLinearAveragePool", attributes, editor);
  if (node.op_type == "Resize") return fuse_resize(node, attributes, editor);
  if (node.op_type == "LayerNormalization") return fuse_layer_norm(node, editor);
  if (node.op_type == "Softmax") {
    if (node.attribute("axis") == nullptr) attributes.set("axis", int64_t{node.opset < 13 ? 1 : -1});
    return fuse_unary(node, "QLinearSoftmax", attributes.set("opset", int64_t{node.opset}), editor);
  }
}

}  // namespace

bool fuse_quantized_operators(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node)) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
