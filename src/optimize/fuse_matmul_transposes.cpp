#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool is_matmul(const Node& node) {
  return (is_op(&node, "MatMul") || is_op(&node, "FusedMatMul", kPlimsollDomain)) && is_real(node.outputs[0]);
}

// A Transpose that goes away if matrix products read through it.
Node* absorbable(const Edge* operand, const Editor& editor) {
  Node* transpose = maker(operand, "Transpose");
  if (transpose == nullptr || rank_of(operand) < 2 || editor.is_graph_output(*operand)) return nullptr;
  for (const Node* user : editor.users(*operand)) {
    if (user->graph != operand->graph || !is_matmul(*user)) return nullptr;
    if (operand != user->input(0) && operand != user->input(1)) return nullptr;
  }
  return transpose;
}

std::vector<int64_t> permutation_attribute(const Node& node, std::string_view name, int64_t rank) {
  const std::span<const int64_t> perm = integers_attribute(node, name);
  if (!perm.empty()) return {perm.begin(), perm.end()};
  std::vector<int64_t> identity;
  for (int64_t i = 0; i < rank; ++i) identity.push_back(i);
  return identity;
}

void set_permutation(AttributeList& attributes, std::string_view name, const std::vector<int64_t>& perm) {
  attributes.erase(name);
  if (!is_identity_permutation(perm)) attributes.set(name, std::span<const int64_t>(perm));
}

void fuse(Node& node, Editor& editor) {
  std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  AttributeList attributes(editor.arena(), node);
  if (rank_of(inputs[0]) < 2 || rank_of(inputs[1]) < 2) return;
  const std::string_view names[] = {"perm_a", "perm_b"};
  bool changed = false;
  for (size_t i = 0; i < 2; ++i) {
    const Node* transpose = absorbable(inputs[i], editor);
    if (transpose == nullptr) continue;
    const auto then = permutation_attribute(node, names[i], rank_of(inputs[i]));
    set_permutation(attributes, names[i], compose_permutations(permutation_of(*transpose), then));
    inputs[i] = transpose->input(0);
    changed = true;
  }
  Node* last = &node;
  Edge* y = node.outputs[0];
  Node* next = editor.only_user(*y);
  if (is_op(next, "Transpose") && node.input(3) == nullptr && rank_of(y) >= 2) {
    const auto first = permutation_attribute(node, "perm_y", rank_of(y));
    const auto perm = compose_permutations(first, permutation_of(*next));
    // The kernels write rows: columns stay side by side.
    if (perm.back() == rank_of(y) - 1) {
      set_permutation(attributes, "perm_y", perm);
      last = next;
      changed = true;
    }
  }
  if (changed) editor.become(*last, kPlimsollDomain, "FusedMatMul", inputs, attributes.list());
}

}  // namespace

bool fuse_matmul_transposes(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_matmul(*node)) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
