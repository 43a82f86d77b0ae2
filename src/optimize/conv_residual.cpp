#include "ops/registry.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// The convolution that makes input i of the Add and nothing else needs.
Node* candidate(const Node& add, size_t i, const Editor& editor) {
  Edge* edge = add.inputs[i];
  const ConvInputs in = open_conv(edge->producer);
  if (in.x == nullptr || in.addend != nullptr || editor.only_user(*edge) != &add) return nullptr;
  return edge->producer;
}

void fuse(Node& add, Editor& editor) {
  if (!same_shape(add.input(0), add.input(1)) || rank_of(add.input(0)) < 3) return;
  Node* left = candidate(add, 0, editor);
  Node* right = candidate(add, 1, editor);
  if (left == nullptr && right == nullptr) return;
  // Of two, the one made later: the other one's result waits, not its input.
  const bool use_left =
      right == nullptr || (left != nullptr && editor.position(*left) > editor.position(*right));
  Node& conv = use_left ? *left : *right;
  ConvInputs in = open_conv(&conv);
  in.addend = add.inputs[use_left ? 1 : 0];
  const AttributeList attributes(editor.arena(), conv);
  editor.become(add, kPlimsollDomain, "FusedConv", in.list(), attributes.list());
}

}  // namespace

bool fuse_conv_residual(Graph& root, const OptimizeOptions&) {
  if (find_op(kPlimsollDomain, "FusedConv") == nullptr) return false;
  Editor editor(root);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Add") && is_f32(node->input(0))) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
