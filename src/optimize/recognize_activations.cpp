#include <cmath>

#include "optimize/activations.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/pipeline.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// What the constants of x's type may be off is forgiven.
bool is_near(float a, float b, const Edge* x) {
  return std::fabs(a - b) < 1e-6f + rounding_of(x) * std::fabs(b);
}

// The factor by which a Mul or Div with a constant multiplies its other input.
struct Scaled {
  Edge* x = nullptr;
  float factor = 0;
};
Scaled scaled(const Node* node) {
  if (is_op(node, "Div")) {
    const auto divisor = scalar_for(node->input(1), node->input(0));
    if (divisor) return {node->input(0), 1.0f / *divisor};
  }
  if (is_op(node, "Mul")) {
    const Operands operands = split_constant(*node);
    const auto factor = operands ? scalar_for(operands.constant, operands.value) : std::nullopt;
    if (factor) return {operands.value, *factor};
  }
  return {};
}

// x of Clip(x + 3, 0, 6).
Edge* relu6_shifted(const Edge* edge, const Editor& editor) {
  const Node* clip = maker(edge, "Clip");
  if (clip == nullptr || editor.only_user(*edge) == nullptr) return nullptr;
  const auto bounds = clip_bounds(*clip);
  const Node* add = maker(clip->input(0), "Add");
  if (!bounds || bounds->first != 0 || bounds->second != 6 || add == nullptr) return nullptr;
  if (editor.only_user(*clip->input(0)) == nullptr) return nullptr;
  const Operands operands = split_constant(*add);
  if (!operands || !is_scalar(operands.constant, operands.value, 3.0f)) return nullptr;
  return operands.value;
}

// Clip(x + 3, 0, 6) / 6.
bool as_hard_sigmoid(Node& node, Editor& editor) {
  const Scaled product = scaled(&node);
  if (product.x == nullptr || !is_near(product.factor, 1.0f / 6, product.x)) return false;
  Edge* x = relu6_shifted(product.x, editor);
  if (x == nullptr) return false;
  AttributeList attributes(editor.arena());
  attributes.set("alpha", 1.0f / 6).set("beta", 0.5f);
  editor.become(node, "", "HardSigmoid", {x}, attributes.list());
  return true;
}

// (x * Clip(x + 3, 0, 6)) / 6.
bool as_divided_hard_swish(Node& node, Editor& editor) {
  const Scaled product = scaled(&node);
  const Node* mul = product.x != nullptr ? maker(product.x, "Mul") : nullptr;
  if (mul == nullptr || !is_near(product.factor, 1.0f / 6, product.x) ||
      editor.only_user(*product.x) == nullptr)
    return false;
  for (size_t i = 0; i < 2; ++i) {
    Edge* x = relu6_shifted(mul->inputs[i], editor);
    if (x == nullptr || x != mul->inputs[1 - i]) continue;
    editor.become(node, "", "HardSwish", {x}, {});
    return true;
  }
  return false;
}

// x * f(x), where f is Sigmoid or HardSigmoid(1/6, 1/2).
bool as_gated(Node& node, Editor& editor, bool silu, bool hard_swish) {
  if (!is_op(&node, "Mul")) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Edge* gate = node.inputs[i];
    Edge* x = node.inputs[1 - i];
    if (gate->producer == nullptr || gate->producer->input(0) != x || editor.only_user(*gate) == nullptr)
      continue;
    if (silu && maker(gate, "Sigmoid") != nullptr) {
      editor.become(node, kPlimsollDomain, "Silu", {x}, {});
      return true;
    }
    const Node* hard = maker(gate, "HardSigmoid");
    if (hard != nullptr && hard_swish && is_near(attribute_or(*hard, "alpha", 0.2f), 1.0f / 6, x) &&
        attribute_or(*hard, "beta", 0.5f) == 0.5f) {
      editor.become(node, "", "HardSwish", {x}, {});
      return true;
    }
  }
  return false;
}

}  // namespace

bool recognize_activations(Graph& root, const OptimizeOptions& options) {
  const bool hard_swish = may_make(root, options, 14);
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || node->outputs.empty() || !is_real(node->outputs[0])) continue;
      if (as_hard_sigmoid(*node, editor) || (hard_swish && as_divided_hard_swish(*node, editor))) continue;
      as_gated(*node, editor, !options.only_onnx, hard_swish);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
