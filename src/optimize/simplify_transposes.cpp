#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// A Transpose of a Transpose is one, or none.
void simplify(Node& node, Editor& editor) {
  const Node* below = maker(node.input(0), "Transpose");
  std::vector<int64_t> perm = permutation_of(node);
  if (below != nullptr && rank_of(below->input(0)) >= 0) {
    perm = compose_permutations(permutation_of(*below), perm);
    if (!is_identity_permutation(perm)) {
      AttributeList attributes(editor.arena());
      attributes.set("perm", std::span<const int64_t>(perm));
      editor.become(node, "", "Transpose", {below->input(0)}, attributes.list());
      return;
    }
  }
  if (!is_identity_permutation(perm)) return;
  editor.replace(*node.outputs[0], below != nullptr ? *below->inputs[0] : *node.inputs[0]);
}

}  // namespace

bool simplify_transposes(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Transpose") && rank_of(node->input(0)) >= 0)
        simplify(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
