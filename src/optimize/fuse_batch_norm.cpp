// BatchNormalization in training, on channels-last tensors: an Add and a Relu behind it become part of it,
// and it hands the batch's statistics to its gradient, which then need not sum them up again and takes the
// gradient of that Relu along.
#include <unordered_map>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool is_candidate(const Node& node) {
  if (!is_op(&node, "BatchNormalization", kPlimsollDomain) || node.inputs.size() != 5 ||
      node.outputs.size() > 3 || attribute_or(node, "channels_last", int64_t{0}) == 0 ||
      attribute_or(node, "training_mode", int64_t{0}) == 0)
    return false;
  // The gradient must see the statistics as they were computed.
  const ElementType x = node.inputs[0]->facts.type.type, statistics = node.inputs[3]->facts.type.type;
  return statistics == (x == ElementType::kDouble ? ElementType::kDouble : ElementType::kFloat);
}

bool is_before(const Edge& edge, const Node& node, const Editor& editor) {
  return edge.producer == nullptr || edge.graph != node.graph ||
         editor.position(*edge.producer) < editor.position(node);
}

struct Fused {
  Node* node = nullptr;
  bool masks = false;  // its output is positive exactly where normalized X is
};

// The node with what is behind it, which gives out the batch's statistics too.
Fused fuse_forward(Node& node, Editor& editor) {
  std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  AttributeList attributes(editor.arena(), node);
  Fused fused;
  Edge* last = node.outputs[0];
  Node* next = editor.only_user(*last);
  if (is_op(next, "Add") && same_shape(next->input(0), next->input(1))) {
    Edge* addend = other_input(*next, last);
    if (is_before(*addend, node, editor)) {
      inputs.push_back(addend);
      last = next->outputs[0];
      next = editor.only_user(*last);
    }
  }
  if (is_op(next, "Relu")) {
    attributes.set("relu", int64_t{1});
    last = next->outputs[0];
    fused.masks = inputs.size() == 5;
  }
  fused.node = editor.after(node).emit(kPlimsollDomain, "BatchNormalization", inputs, attributes.list(), 5);
  fused.node->name = node.name;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != nullptr) editor.replace(*node.outputs[i], *fused.node->outputs[i]);
  }
  editor.replace(*last, *fused.node->outputs[0]);
  return fused;
}

void fuse_backward(Node& node, const Fused& forward, Editor& editor) {
  const Node& made = *forward.node;
  Edge* dy = node.inputs[1];
  AttributeList attributes(editor.arena(), node);
  attributes.set("of_batch", int64_t{1});
  const Node* mask = dy->producer;
  const bool relu = forward.masks && is_op(mask, "ReluGradient", kPlimsollDomain) &&
                    mask->inputs[0] == made.outputs[0] && editor.only_user(*dy) == &node;
  if (relu) {
    dy = mask->inputs[1];
    attributes.set("relu", int64_t{1});
  }
  std::vector<Edge*> inputs{node.inputs[0], dy, node.inputs[2], made.outputs[3], made.outputs[4]};
  if (relu) inputs.push_back(made.inputs[2]);
  editor.become(node, kPlimsollDomain, "BatchNormalizationGradient", inputs, attributes.list());
}

bool is_gradient_of(const Node& node, const Node& forward) {
  return node.inputs[2] == forward.inputs[1] &&
         attribute_or(node, "epsilon", 1e-5f) == attribute_or(forward, "epsilon", 1e-5f) &&
         attribute_or(node, "channels_last", int64_t{0}) != 0;
}

}  // namespace

bool fuse_batch_norm(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  std::unordered_map<const Edge*, Fused> forward;  // by X
  for (Node* node : editor.nodes(root)) {
    if (!editor.alive(*node)) continue;
    if (is_candidate(*node)) {
      const Edge* x = node->inputs[0];
      forward[x] = fuse_forward(*node, editor);
    } else if (is_op(node, "BatchNormalizationGradient", kPlimsollDomain) && node->inputs.size() == 3) {
      const auto found = forward.find(node->inputs[0]);
      if (found != forward.end() && is_gradient_of(*node, *found->second.node))
        fuse_backward(*node, found->second, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
