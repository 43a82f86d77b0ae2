#include "optimize/residual.h"

#include "graph/op_def.h"
#include "optimize/editor.h"
#include "optimize/match.h"

namespace plimsoll {
namespace {

void fuse(Node& add, const ResidualForm& form, Editor& editor) {
  if (!same_shape(add.input(0), add.input(1))) return;
  Node* chosen = nullptr;
  std::vector<Edge*> inputs;
  for (size_t i = 0; i < 2; ++i) {
    Node* product = add.inputs[i]->producer;
    // Of two, the one made later: the other one's result waits, not its input.
    if (chosen != nullptr && product != nullptr && editor.position(*product) <= editor.position(*chosen))
      continue;
    auto fused = form.with_addend(product, add.inputs[1 - i]);
    if (!fused || editor.only_user(*add.inputs[i]) != &add) continue;
    chosen = product;
    inputs = std::move(*fused);
  }
  if (chosen == nullptr) return;
  const AttributeList attributes(editor.arena(), *chosen);
  editor.become(add, kPlimsollDomain, form.fused, inputs, attributes.list());
}

}  // namespace

bool fuse_residuals(Graph& root, const ResidualForm& form, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Add") && is_real(node->input(0))) fuse(*node, form, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
