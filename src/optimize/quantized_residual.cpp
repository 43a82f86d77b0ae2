// QLinearAdd behind a product: part of it.
#include "optimize/quantized.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Of QLinearConv and FusedQLinearConv, and of QLinearAdd.
constexpr size_t kConvInputs = 9, kAddA = 0, kAddB = 3, kAddScale = 6, kAddZero = 7;

bool is_open(const Node* conv) {
  if (!is_op(conv, "QLinearConv", kPlimsollDomain) && !is_op(conv, "FusedQLinearConv", kPlimsollDomain))
    return false;
  return attribute_or(*conv, "channels_last", int64_t{0}) != 0 &&
         attribute_or(*conv, "group", int64_t{1}) == 1 && conv->input(6) != nullptr &&
         conv->input(kConvInputs) == nullptr && conv->attribute("least") == nullptr &&
         conv->attribute("most") == nullptr;
}

// One row for all of y.
bool is_row_of(const Edge* row, const Edge* y) {
  return is_constant(row) && row->facts.type.ranked && y->facts.type.ranked && rank_of(y) > 0 &&
         rank_of(row) <= rank_of(y) && rank_of(row) > 0 &&
         row->facts.type.dims.back() == y->facts.type.dims.back() &&
         product(row->facts.type.dims) == row->facts.type.dims.back();
}

bool fuse_into_product(Node& add, size_t from, Editor& editor) {
  const size_t other = from == kAddA ? kAddB : kAddA;
  Edge *y = add.input(from), *z = add.input(other);
  Node* product = y->producer;
  if (!is_op(product, "QLinearMatMul") || editor.only_user(*y) != &add || add.input(kAddZero) == nullptr)
    return false;
  if (!is_byte(product->input(0)->facts.type.type) || !is_byte(product->input(3)->facts.type.type))
    return false;
  if (add.input(other + 2) == nullptr || add.outputs[0]->facts.type.type != y->facts.type.type ||
      !same_shape(add.outputs[0], y) || (!is_row_of(z, y) && !same_shape(y, z)))
    return false;
  std::vector<Edge*> inputs(product->inputs.begin(), product->inputs.end());
  for (Edge* edge :
       {z, add.input(other + 1), add.input(other + 2), add.input(kAddScale), add.input(kAddZero)})
    inputs.push_back(edge);
  editor.become(add, kPlimsollDomain, "QLinearMatMulAdd", inputs, {});
  return true;
}

bool fuse(Node& add, size_t from, Editor& editor) {
  const size_t other = from == kAddA ? kAddB : kAddA;
  Edge *y = add.input(from), *z = add.input(other);
  Node* conv = y->producer;
  if (!is_open(conv) || editor.only_user(*y) != &add || z->producer == conv) return false;
  if (!same_shape(y, z) || z->facts.type.type != y->facts.type.type || add.input(kAddZero) == nullptr)
    return false;
  std::vector<Edge*> inputs(conv->inputs.begin(), conv->inputs.end());
  inputs.resize(kConvInputs);
  for (Edge* edge :
       {z, add.input(other + 1), add.input(other + 2), add.input(kAddScale), add.input(kAddZero)})
    inputs.push_back(edge);
  editor.become(add, kPlimsollDomain, "FusedQLinearConv", inputs, conv->attributes);
  return true;
}

}  // namespace

bool fuse_quantized_residual(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || !is_op(node, "QLinearAdd", kMicrosoftDomain)) continue;
      if (fuse(*node, kAddA, editor) || fuse(*node, kAddB, editor)) continue;
      if (!fuse_into_product(*node, kAddA, editor)) fuse_into_product(*node, kAddB, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
