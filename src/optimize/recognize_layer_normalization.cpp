#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/pipeline.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// A ReduceMean over the last axis that keeps it.
bool is_last_mean(const Node* node) {
  if (!is_op(node, "ReduceMean") || attribute_or(*node, "keepdims", int64_t{1}) != 1) return false;
  const int64_t rank = rank_of(node->input(0));
  std::span<const int64_t> axes = integers_attribute(*node, "axes");
  std::optional<std::vector<int64_t>> from_input;
  if (axes.empty() && node->input(1) != nullptr) {
    from_input = integers(node->input(1));
    if (from_input) axes = *from_input;
  }
  return rank > 0 && axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
}

// d of d * d or Pow(d, 2).
const Edge* squared(const Node* node) {
  if (is_op(node, "Mul") && node->input(0) == node->input(1)) return node->input(0);
  if (is_op(node, "Pow") && is_scalar(node->input(1), node->input(0), 2.0f)) return node->input(0);
  return nullptr;
}

struct Normalized {
  Edge* x = nullptr;
  float epsilon = 0;
};

// (x - mean x) / sqrt(mean (x - mean x)^2 + epsilon)
Normalized normalized(const Node& div, const Editor& editor) {
  const Edge* centered = div.input(0);
  if (centered == nullptr) return {};
  const Node* sub = maker(centered, "Sub");
  const Node* root = maker(div.input(1), "Sqrt");
  if (sub == nullptr || root == nullptr || editor.only_user(*root->outputs[0]) == nullptr) return {};
  Edge* x = sub->input(0);
  const Node* mean = maker(sub->input(1), "ReduceMean");
  if (!is_last_mean(mean) || mean->input(0) != x || editor.only_user(*mean->outputs[0]) == nullptr) return {};
  // An epsilon that 16 bits round to zero is gone, and so is its Add.
  const Node* add = maker(root->input(0), "Add");
  if (add != nullptr && editor.only_user(*add->outputs[0]) == nullptr) return {};
  const Operands sum = add != nullptr ? split_constant(*add) : Operands();
  const Edge* squares = add != nullptr ? sum.value : root->input(0);
  const Node* variance = squares != nullptr ? maker(squares, "ReduceMean") : nullptr;
  const auto epsilon = sum ? scalar_for(sum.constant, sum.value) : std::optional(0.0f);
  if (!epsilon || !is_last_mean(variance) || editor.only_user(*squares) == nullptr) return {};
  const Node* power = variance->input(0)->producer;
  if (squared(power) != centered || editor.only_user(*power->outputs[0]) == nullptr) return {};
  // Whatever else reads the centered values would keep them alive.
  for (const Node* user : editor.users(*centered)) {
    if (user != &div && user != power) return {};
  }
  if (editor.is_graph_output(*centered)) return {};
  return {x, *epsilon};
}

// A constant with one value per element of the last axis of x, as a vector.
Edge* last_axis_vector(Edge* edge, const Edge* x, bool trains, Editor& editor) {
  if (edge == nullptr || !is_real(edge)) return nullptr;
  const Dim width = x->facts.type.dims.back();
  if (rank_of(edge) == 1 && edge->facts.type.dims[0] == width) return edge;
  if (trains || !is_constant(edge) || edge->data == nullptr || rank_of(edge) < 1 ||
      rank_of(edge) > rank_of(x))
    return nullptr;
  const std::span<const int64_t> dims = edge->constant->dims;
  if (!(Dim(dims.back()) == width) || edge->constant->elements() != dims.back()) return nullptr;
  const int64_t vector[] = {dims.back()};
  return editor.constant_view(*edge, vector);
}

bool recognize(Node& div, bool trains, Editor& editor) {
  const Normalized form = normalized(div, editor);
  if (form.x == nullptr) return false;
  Node* mul = editor.only_user(*div.outputs[0]);
  if (!is_op(mul, "Mul")) return false;
  Edge* scale = last_axis_vector(other_input(*mul, div.outputs[0]), form.x, trains, editor);
  if (scale == nullptr) return false;
  Node* last = mul;
  Edge* bias = nullptr;
  Node* add = editor.only_user(*mul->outputs[0]);
  if (is_op(add, "Add")) {
    bias = last_axis_vector(other_input(*add, mul->outputs[0]), form.x, trains, editor);
    if (bias != nullptr) last = add;
  }
  AttributeList attributes(editor.arena());
  attributes.set("axis", int64_t{-1}).set("epsilon", form.epsilon);
  if (bias != nullptr) {
    editor.become(*last, "", "LayerNormalization", {form.x, scale, bias}, attributes.list());
  } else {
    editor.become(*last, "", "LayerNormalization", {form.x, scale}, attributes.list());
  }
  return true;
}

}  // namespace

bool recognize_layer_normalization(Graph& root, const OptimizeOptions& options) {
  if (!may_make(root, options, 17)) return false;
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "Div") && is_real(node->input(0)) && rank_of(node->input(0)) > 0)
        recognize(*node, options.trains, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
