#include "ops/registry.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

Node* candidate(const Node& add, size_t i, const Editor& editor) {
  Edge* edge = add.inputs[i];
  const MatMulInputs in = open_matmul(edge->producer);
  if (in.a == nullptr || in.addend != nullptr || editor.only_user(*edge) != &add) return nullptr;
  return rank_of(in.a) >= 2 && rank_of(in.b) >= 2 ? edge->producer : nullptr;
}

void fuse(Node& add, Editor& editor) {
  if (!same_shape(add.input(0), add.input(1))) return;
  Node* left = candidate(add, 0, editor);
  Node* right = candidate(add, 1, editor);
  if (left == nullptr && right == nullptr) return;
  const bool use_left =
      right == nullptr || (left != nullptr && editor.position(*left) > editor.position(*right));
  Node& product = use_left ? *left : *right;
  MatMulInputs in = open_matmul(&product);
  in.addend = add.inputs[use_left ? 1 : 0];
  const AttributeList attributes(editor.arena(), product);
  editor.become(add, kPlimsollDomain, "FusedMatMul", in.list(), attributes.list());
}

}  // namespace

bool fuse_matmul_residual(Graph& root, const OptimizeOptions&) {
  if (find_op(kPlimsollDomain, "FusedMatMul") == nullptr) return false;
  Editor editor(root);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Add") && is_f32(node->input(0))) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
