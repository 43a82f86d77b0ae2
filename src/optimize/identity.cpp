#include <algorithm>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool all_equal(const std::optional<std::vector<int64_t>>& values, int64_t wanted) {
  return values && std::all_of(values->begin(), values->end(), [&](int64_t v) { return v == wanted; });
}

// Reshape and its kind: the same elements in the same order.
bool is_view(const Node* node) {
  if (node == nullptr || !node->domain.empty()) return false;
  const std::string_view op = node->op_type;
  return op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten";
}

bool is_noop_dropout(const Node& node, const Editor& editor) {
  if (node.outputs.size() > 1 && node.outputs[1] != nullptr && editor.use_count(*node.outputs[1]) > 0)
    return false;
  if (node.opset < 7) return attribute_or(node, "is_test", int64_t{0}) != 0;
  const Edge* training = node.input(2);
  if (training == nullptr) return true;
  return is_constant(training) && training->constant->bytes() == 1 &&
         *training->constant->data == std::byte{0};
}

bool is_noop_pad(const Node& node) {
  if (node.opset < 11) {
    const Attribute* pads = node.attribute(node.opset < 2 ? "paddings" : "pads");
    return pads != nullptr &&
           std::all_of(pads->ints.begin(), pads->ints.end(), [](int64_t p) { return p == 0; });
  }
  return all_equal(integers(node.input(1)), 0);
}

bool is_noop_slice(const Node& node) {
  if (!same_shape(node.input(0), node.outputs[0])) return false;
  if (node.opset < 10 || node.input(4) == nullptr) return true;
  return all_equal(integers(node.input(4)), 1);
}

bool is_neutral_constant(const Node& node) {
  const Edge* x = node.input(0);
  const Edge* y = node.input(1);
  if (node.op_type == "Add") return is_scalar(y, x, 0.0f);
  if (node.op_type == "Sub") return is_scalar(y, x, 0.0f);
  if (node.op_type == "Mul" || node.op_type == "Div") return is_scalar(y, x, 1.0f);
  return false;
}

// Output 0 is input 0.
bool hands_on(const Node& node, const Editor& editor) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.empty() || node.outputs[0] == nullptr)
    return false;
  const std::string_view op = node.op_type;
  const Edge* x = node.input(0);
  if (x == nullptr) return false;
  if (op == "Identity") return true;
  if (op == "Dropout") return is_noop_dropout(node, editor);
  if (x->facts.type.kind != ValueKind::kTensor) return false;
  if (op == "Cast") return attribute_or(node, "to", int64_t{0}) == static_cast<int64_t>(x->facts.type.type);
  if (op == "Transpose") return rank_of(x) >= 0 && is_identity_permutation(permutation_of(node));
  if (is_view(&node) || op == "Expand") return same_shape(x, node.outputs[0]);
  if (op == "Concat" || op == "Sum" || op == "Max" || op == "Min" || op == "Mean")
    return node.inputs.size() == 1;
  // Its sizes may tell more than is known of its input.
  if (op == "Split") return node.outputs.size() == 1 && same_shape(x, node.outputs[0]);
  if (op == "Pad") return is_noop_pad(node);
  if (op == "Slice") return is_noop_slice(node);
  return is_neutral_constant(node);
}

bool same_count(const Edge* a, const Edge* b) {
  return rank_of(a) >= 0 && rank_of(b) >= 0 && product(a->facts.type.dims) == product(b->facts.type.dims);
}

// A view of a view is a view of what the first one saw.
bool skip_views(Node& node, Editor& editor) {
  if (!is_view(&node)) return false;
  Node* below = node.inputs[0]->producer;
  if (!is_view(below) || below->graph != node.graph) return false;
  constexpr int kDeepest = 100;  // a longer chain is looked through piece by piece
  int depth = 0;
  for (const Node* n = below; is_view(n) && depth < kDeepest; n = n->inputs[0]->producer, ++depth) {
    if (same_shape(n->inputs[0], node.outputs[0])) return editor.replace(*node.outputs[0], *n->inputs[0]);
  }
  if (node.op_type != "Reshape" || node.opset < 5 || attribute_or(node, "allowzero", int64_t{0}) != 0)
    return false;
  // What the view between them says of a size must not be lost.
  if (!same_count(below->inputs[0], node.outputs[0])) return false;
  const auto shape = integers(node.input(1));
  if (!shape || std::find(shape->begin(), shape->end(), 0) != shape->end()) return false;
  editor.set_input(node, 0, below->inputs[0]);
  return true;
}

// Operators whose inputs broadcast, whatever they compute.
bool broadcasts(const Node& node) {
  constexpr std::string_view kOperators[] = {"Add",
                                             "Sub",
                                             "Mul",
                                             "Div",
                                             "Pow",
                                             "Max",
                                             "Min",
                                             "Sum",
                                             "Mod",
                                             "Equal",
                                             "Less",
                                             "Greater",
                                             "GreaterOrEqual",
                                             "LessOrEqual",
                                             "And",
                                             "Or",
                                             "Xor",
                                             "Where"};
  constexpr int64_t kFirstThatBroadcasts = 8;
  return node.domain.empty() && node.opset >= kFirstThatBroadcasts &&
         std::find(std::begin(kOperators), std::end(kOperators), node.op_type) != std::end(kOperators);
}

// What is expanded to the shape that another input has by itself need not be.
void skip_expansions(Node& node, Editor& editor) {
  if (!broadcasts(node) || node.inputs.size() < 2) return;
  const auto has_its_shape = [&](const Edge* e) { return e != nullptr && same_shape(e, node.outputs[0]); };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node* expand = maker(node.inputs[i], "Expand");
    if (expand == nullptr || expand->graph != node.graph || rank_of(expand->inputs[0]) < 0) continue;
    bool another = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) another |= k != i && has_its_shape(node.inputs[k]);
    if (another) editor.set_input(node, i, expand->inputs[0]);
  }
}

}  // namespace

bool remove_identities(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node)) continue;
      if (hands_on(*node, editor)) {
        editor.replace(*node->outputs[0], *node->inputs[0]);
      } else if (!skip_views(*node, editor)) {
        skip_expansions(*node, editor);
      }
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
