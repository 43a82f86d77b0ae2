#include "optimize/activations.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// The fused operator that can do what `node` does and an activation after it; empty if there is none.
std::string_view fused_form(const Node& node) {
  if (open_conv(&node).x != nullptr) return "FusedConv";
  if (open_matmul(&node).a != nullptr) return "FusedMatMul";
  if (is_op(&node, "ScaleShift", kPlimsollDomain) && !has_activation(node)) return "ScaleShift";
  return {};
}

void fuse(Node& node, Editor& editor) {
  const std::string_view form = fused_form(node);
  if (form.empty()) return;
  Node* next = editor.only_user(*node.outputs[0]);
  const auto activation = next != nullptr ? activation_of(*next) : std::nullopt;
  if (!activation || next->input(0) != node.outputs[0]) return;
  AttributeList attributes(editor.arena(), node);
  set_activation(attributes, *activation);
  editor.become(*next, kPlimsollDomain, form, node.inputs, attributes.list());
}

}  // namespace

bool fuse_activations(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node)) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
