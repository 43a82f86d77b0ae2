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
      if (!fuse(*node, kAddA, editor)) fuse(*node, kAddB, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
