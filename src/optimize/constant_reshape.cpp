#include <algorithm>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool depends_on_data(std::span<const Dim> dims) {
  return std::any_of(dims.begin(), dims.end(), [](Dim d) { return d.depends_on_data(); });
}

// The shape operand that says the same with constants: 0 copies a dimension, one -1 stands for the rest.
std::optional<std::vector<int64_t>> constant_shape(std::span<const Dim> in, std::span<const Dim> out) {
  std::vector<int64_t> shape;
  bool copies = false, infers = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is_constant()) {
      if (out[i].value() == 0) return std::nullopt;
      shape.push_back(out[i].value());
    } else if (i < in.size() && in[i] == out[i]) {
      shape.push_back(0);
      copies = true;
    } else {
      if (infers) return std::nullopt;
      shape.push_back(-1);
      infers = true;
    }
  }
  // If a copied dimension is empty, nothing can be told of the rest.
  if (copies && infers) return std::nullopt;
  // What the caller or the data says may be wrong, and -1 would not ask.
  if (infers && depends_on_data(out) && !(product(in) == product(out))) return std::nullopt;
  return shape;
}

void simplify(Node& node, Editor& editor) {
  const Edge* x = node.input(0);
  if (node.opset < 5 || is_constant(node.input(1)) || attribute_or(node, "allowzero", int64_t{0}) != 0)
    return;
  if (rank_of(x) < 0 || rank_of(node.outputs[0]) < 0) return;
  if (node.input(1)->producer == nullptr) return;  // a caller's shape may be wrong, and -1 would fit
  const auto shape = constant_shape(x->facts.type.dims, node.outputs[0]->facts.type.dims);
  if (!shape) return;
  const int64_t dims[] = {static_cast<int64_t>(shape->size())};
  editor.set_input(node, 1, editor.constant("shape", dims, std::span<const int64_t>(*shape)));
}

}  // namespace

bool use_constant_shapes(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Reshape")) simplify(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
