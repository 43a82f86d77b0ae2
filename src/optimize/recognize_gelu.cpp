#include <cmath>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/pipeline.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// The node is x * factor, as Mul or Div with a constant scalar.
bool is_scaled(const Node* node, const Edge* x, float factor) {
  if (node == nullptr || x == nullptr) return false;
  const float tolerance = 1e-4f + rounding_of(x);
  auto near = [=](float a, float b) { return std::fabs(a - b) < tolerance * std::fabs(b); };
  if (is_op(node, "Div")) {
    const auto divisor = node->input(0) == x ? scalar_for(node->input(1), x) : std::nullopt;
    return divisor && near(1.0f / *divisor, factor);
  }
  if (!is_op(node, "Mul")) return false;
  const Operands operands = split_constant(*node);
  const auto found = operands.value == x ? scalar_for(operands.constant, x) : std::nullopt;
  return found && near(*found, factor);
}

Edge* inner_x(const Node& erf) {
  const Node* scale = erf.input(0)->producer;
  if (scale == nullptr || scale->inputs.empty()) return nullptr;
  const Operands operands = split_constant(*scale);
  Edge* x = operands ? operands.value : nullptr;
  return is_scaled(scale, x, 0.70710678f) ? x : nullptr;
}

// The last node of x * (1 + erf(x / sqrt 2)) / 2, whichever way the three factors are grouped.
Node* outer_product(const Node& erf, Edge* x, const Editor& editor) {
  Node* add = editor.only_user(*erf.outputs[0]);
  if (!is_op(add, "Add")) return nullptr;
  if (!is_scalar(other_input(*add, erf.outputs[0]), erf.outputs[0], 1.0f)) return nullptr;
  const Edge* sum = add->outputs[0];
  Node* first = editor.only_user(*sum);
  if (first == nullptr) return nullptr;
  const Edge* product = first->outputs[0];
  Node* second = editor.only_user(*product);
  if (is_scaled(first, sum, 0.5f))
    return is_op(second, "Mul") && other_input(*second, product) == x ? second : nullptr;
  if (!is_op(first, "Mul")) return nullptr;
  const Edge* factor = other_input(*first, sum);
  if (is_scaled(factor->producer, x, 0.5f)) return first;
  return factor == x && is_scaled(second, product, 0.5f) ? second : nullptr;
}

}  // namespace

bool recognize_gelu(Graph& root, const OptimizeOptions& options) {
  if (!may_make(root, options, 20)) return false;
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || !is_op(node, "Erf") || !is_real(node->input(0))) continue;
      Edge* x = inner_x(*node);
      Node* last = x != nullptr ? outer_product(*node, x, editor) : nullptr;
      if (last == nullptr) continue;
      editor.become(*last, "", "Gelu", {x}, {});
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
