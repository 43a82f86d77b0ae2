#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// x and s of x * s or x / s with a constant scalar.
struct Scaled {
  Edge* x = nullptr;
  float factor = 1;
};
Scaled scaled(const Node* node) {
  if (is_op(node, "Div")) {
    const auto divisor = scalar_for(node->input(1), node->input(0));
    if (divisor && *divisor != 0) return {node->input(0), 1.0f / *divisor};
  } else if (is_op(node, "Mul")) {
    const Operands operands = split_constant(*node);
    const auto factor = operands ? scalar_for(operands.constant, operands.value) : std::nullopt;
    if (factor) return {operands.value, *factor};
  }
  return {};
}

// A vector of `width` numbers along the last axis: as it is if it has rank 1, else as a constant's view.
Edge* bias_vector(Edge* edge, Dim width, int64_t most_rank, Editor& editor) {
  if (!is_real(edge) || rank_of(edge) < 1 || rank_of(edge) > most_rank) return nullptr;
  const std::span<const Dim> dims = edge->facts.type.dims;
  if (!(dims.back() == width)) return nullptr;
  if (dims.size() == 1) return edge;
  for (Dim d : dims.first(dims.size() - 1)) {
    if (!(d == Dim(1))) return nullptr;
  }
  if (edge->data == nullptr || edge->persistent) return nullptr;
  const int64_t vector[] = {width.value()};
  return editor.constant_view(*edge, vector);
}

class MatMulFusion {
 public:
  MatMulFusion(Node& node, Editor& editor)
      : editor_(editor), last_(&node), in_(open_matmul(&node)), attributes_(editor.arena(), node) {
    alpha_ = attribute_or(node, "alpha", 1.0f);
  }

  void run() {
    if (in_.a == nullptr || rank_of(in_.a) < 2 || rank_of(in_.b) < 2) return;
    absorb_scale_before(in_.a);
    absorb_scale_before(in_.b);
    // The bias comes after the scale, the addend and another order of axes after both.
    if (in_.addend == nullptr && last_->attribute("perm_y") == nullptr) {
      if (in_.bias == nullptr) absorb_scale_after();
      if (in_.bias == nullptr) absorb_bias();
    }
    if (!changed_) return;
    attributes_.erase("alpha");
    if (alpha_ != 1.0f) attributes_.set("alpha", alpha_);
    editor_.become(*last_, kPlimsollDomain, "FusedMatMul", in_.list(), attributes_.list());
  }

 private:
  void absorb_scale_before(Edge*& operand) {
    const Scaled product = scaled(operand->producer);
    if (product.x == nullptr || editor_.only_user(*operand) == nullptr || rank_of(product.x) < 2) return;
    alpha_ *= product.factor;
    operand = product.x;
    changed_ = true;
  }
  void absorb_scale_after() {
    Edge* y = last_->outputs[0];
    Node* next = editor_.only_user(*y);
    const Scaled product = scaled(next);
    if (product.x != y) return;
    alpha_ *= product.factor;
    last_ = next;
    changed_ = true;
  }
  void absorb_bias() {
    Edge* y = last_->outputs[0];
    Node* next = editor_.only_user(*y);
    if (!is_op(next, "Add") || rank_of(y) < 1) return;
    Edge* bias = bias_vector(other_input(*next, y), y->facts.type.dims.back(), rank_of(y), editor_);
    if (bias == nullptr) return;
    in_.bias = bias;
    last_ = next;
    changed_ = true;
  }

  Editor& editor_;
  Node* last_;
  MatMulInputs in_;
  AttributeList attributes_;
  float alpha_ = 1;
  bool changed_ = false;
};

// Gemm whose C is a vector along the columns.
void convert_gemm(Node& node, Editor& editor) {
  Edge* a = node.input(0);
  Edge* b = node.input(1);
  Edge* c = node.input(2);
  if (!is_real(a) || rank_of(a) != 2 || rank_of(b) != 2 || rank_of(node.outputs[0]) != 2) return;
  const float beta = attribute_or(node, "beta", 1.0f);
  Edge* bias = nullptr;
  if (c != nullptr && beta != 0) {
    bias = bias_vector(c, node.outputs[0]->facts.type.dims[1], 2, editor);
    if (bias == nullptr) return;
    if (beta != 1.0f) {
      auto values = floats(bias);
      if (!values) return;
      for (float& v : *values) v *= beta;
      const int64_t dims[] = {static_cast<int64_t>(values->size())};
      bias = editor.reals("scaled_bias", a->facts.type.type, dims, *values);
    }
  }
  AttributeList attributes(editor.arena());
  const float alpha = attribute_or(node, "alpha", 1.0f);
  if (alpha != 1.0f) attributes.set("alpha", alpha);
  if (attribute_or(node, "transA", int64_t{0}) != 0) attributes.set("trans_a", int64_t{1});
  if (attribute_or(node, "transB", int64_t{0}) != 0) attributes.set("trans_b", int64_t{1});
  const MatMulInputs in{a, b, bias, nullptr};
  editor.become(node, kPlimsollDomain, "FusedMatMul", in.list(), attributes.list());
}

// MatMulNBits has room for a bias.
void fuse_bias_of_blocks(Node& node, Editor& editor) {
  constexpr size_t kBias = 5;
  Edge* y = node.outputs[0];
  const bool fits = is_real(y) && y->facts.type.type == ElementType::kFloat && rank_of(y) >= 1;
  if (node.input(kBias) != nullptr || !fits) return;
  Node* next = editor.only_user(*y);
  if (!is_op(next, "Add")) return;
  Edge* bias = bias_vector(other_input(*next, y), y->facts.type.dims.back(), rank_of(y), editor);
  if (bias == nullptr) return;
  std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  inputs.resize(kBias);
  inputs.push_back(bias);
  const AttributeList attributes(editor.arena(), node);
  editor.become(*next, kMicrosoftDomain, "MatMulNBits", inputs, attributes.list());
}

}  // namespace

bool fuse_matmul(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node)) continue;
      if (is_op(node, "Gemm")) convert_gemm(*node, editor);
      if (is_op(node, "MatMulNBits", kMicrosoftDomain)) fuse_bias_of_blocks(*node, editor);
      MatMulFusion(*node, editor).run();
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
