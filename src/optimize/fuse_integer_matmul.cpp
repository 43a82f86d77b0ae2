// MatMulInteger, Cast to float, Mul by the product of both scales, and Add of a bias: what dynamic
// quantization makes of a MatMul. All of it is MatMulIntegerToFloat of com.microsoft; with the
// DynamicQuantizeLinear before it, if that serves nobody else, DynamicQuantizeMatMul.
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool is_f32(const Edge* edge) {
  return edge != nullptr && edge->facts.type.kind == ValueKind::kTensor &&
         edge->facts.type.type == ElementType::kFloat;
}

// Known to have as many elements.
bool has_elements(const Edge* edge, Dim count) {
  return edge != nullptr && edge->facts.type.ranked && product(edge->facts.type.dims) == count;
}

// One scale for B, or one per column, as the product broadcasts it.
bool is_column_scale(const Edge* edge, Dim columns) {
  return has_elements(edge, 1) || (has_elements(edge, columns) && rank_of(edge) == 1);
}

struct Scales {
  Edge *a = nullptr, *b = nullptr;
};

Scales scales_of(const Edge* factor, Dim columns) {
  const Node* mul = maker(factor, "Mul");
  if (mul == nullptr || !is_f32(factor)) return {};
  for (size_t i : {0, 1}) {
    Edge *a = mul->input(i), *b = mul->input(1 - i);
    if (has_elements(a, 1) && rank_of(a) <= 1 && is_column_scale(b, columns)) return {a, b};
  }
  return {};
}

// The bias that an Add behind `y` adds to every row.
Edge* row_bias(const Node* add, const Edge* y, Dim columns) {
  if (!is_op(add, "Add") || !same_shape(add->outputs[0], y)) return nullptr;
  Edge* bias = other_input(*add, y);
  return bias != nullptr && is_constant(bias) && is_f32(bias) && rank_of(bias) == 1 &&
                 has_elements(bias, columns)
             ? bias
             : nullptr;
}

// The node that quantizes A for this product alone; null if there is none.
const Node* own_quantizer(const Node& product, const Edge* a_scale, const Edge* factor,
                          const Editor& editor) {
  const Node* maker_of_a = maker(product.input(0), "DynamicQuantizeLinear");
  if (maker_of_a == nullptr || !is_f32(maker_of_a->input(0)) || maker_of_a->outputs.size() != 3 ||
      maker_of_a->outputs[1] != a_scale || maker_of_a->outputs[2] != product.input(2))
    return nullptr;
  for (const Edge* output : maker_of_a->outputs) {
    if (editor.use_count(*output) != 1) return nullptr;
  }
  return editor.use_count(*factor) == 1 ? maker_of_a : nullptr;
}

void fuse(Node& product, Editor& editor) {
  const Edge* b = product.input(1);
  if (rank_of(b) < 2 || !product.outputs[0]->facts.type.ranked) return;
  const Edge* a_zero = product.input(2);
  if (a_zero != nullptr && !has_elements(a_zero, 1)) return;
  const Dim columns = b->facts.type.dims.back();
  const Node* cast = editor.only_user(*product.outputs[0]);
  if (!is_op(cast, "Cast") || !is_f32(cast->outputs[0])) return;
  Node* mul = editor.only_user(*cast->outputs[0]);
  if (!is_op(mul, "Mul") || !same_shape(mul->outputs[0], cast->outputs[0])) return;
  const Edge* factor = other_input(*mul, cast->outputs[0]);
  const Scales scales = scales_of(factor, columns);
  if (scales.a == nullptr) return;
  Node* last = mul;
  Node* add = editor.only_user(*mul->outputs[0]);
  Edge* bias = row_bias(add, mul->outputs[0], columns);
  if (bias != nullptr) last = add;
  if (const Node* quantizer = own_quantizer(product, scales.a, factor, editor))
    return editor.become(*last, kMicrosoftDomain, "DynamicQuantizeMatMul",
                         {quantizer->input(0), product.input(1), scales.b, product.input(3), bias}, {});
  editor.become(
      *last, kMicrosoftDomain, "MatMulIntegerToFloat",
      {product.input(0), product.input(1), scales.a, scales.b, product.input(2), product.input(3), bias}, {});
}

}  // namespace

bool fuse_integer_matmul(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node) && is_op(node, "MatMulInteger")) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
