#include "optimize/affine.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

struct Chain {
  Affine map;
  Node* last = nullptr;
  int steps = 0;
  bool normalizes = false;
};

std::optional<Affine> step(const Node* node, const Edge& x) {
  const int64_t rank = rank_of(&x);
  const int64_t channels = rank >= 2 ? x.facts.type.dims[1].constant().value_or(-1) : -1;
  return node != nullptr ? affine_of(*node, x, rank, channels) : std::nullopt;
}

Chain collect(Node& first, const Edge& x, const Editor& editor) {
  Chain chain;
  const Edge* value = &x;
  Node* node = &first;
  while (node != nullptr && same_shape(&x, node->outputs[0])) {
    const auto next = step(node, *value);
    if (!next) break;
    chain.map = chain.steps == 0 ? *next : chain.map.then(*next);
    chain.last = node;
    ++chain.steps;
    chain.normalizes |= node->op_type == "BatchNormalization";
    value = node->outputs[0];
    node = editor.only_user(*value);
  }
  return chain;
}

// The Add of a value of the same shape behind the chain.
Node* addition(const Chain& chain, const Editor& editor) {
  Edge* y = chain.last->outputs[0];
  Node* add = editor.only_user(*y);
  return is_op(add, "Add") && same_shape(add->input(0), add->input(1)) ? add : nullptr;
}

void fuse(Node& node, Editor& editor) {
  Edge* x = is_constant(node.input(0)) ? node.input(1) : node.input(0);
  if (x == nullptr || is_constant(x) || !is_real(x) || rank_of(x) < 1) return;
  if (x->facts.type.type == ElementType::kDouble) return;
  Chain chain = collect(node, *x, editor);
  if (chain.steps == 0) return;
  Node* add = addition(chain, editor);
  if (add != nullptr && !chain.map.scales() && !chain.normalizes) add = nullptr;
  if (!chain.normalizes && chain.steps < 2 && add == nullptr) return;
  Edge* addend = add != nullptr ? other_input(*add, chain.last->outputs[0]) : nullptr;
  if (add != nullptr) chain.last = add;
  const int64_t scale_dims[] = {static_cast<int64_t>(chain.map.scale.size())};
  const int64_t shift_dims[] = {static_cast<int64_t>(chain.map.shift.size())};
  Edge* scale = editor.constant("scale", scale_dims, std::span<const float>(chain.map.scale));
  Edge* shift = editor.constant("shift", shift_dims, std::span<const float>(chain.map.shift));
  if (addend != nullptr) {
    editor.become(*chain.last, kPlimsollDomain, "ScaleShift", {x, scale, shift, addend}, {});
  } else {
    editor.become(*chain.last, kPlimsollDomain, "ScaleShift", {x, scale, shift}, {});
  }
}

}  // namespace

bool fuse_scale_shift(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && node->inputs.size() >= 2) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
