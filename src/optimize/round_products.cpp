// Which products of floats are computed in bfloat16, where the session asks for it: those with a constant
// matrix or kernel that is large enough to fill what the processor multiplies at once. The operators' own
// files say what becomes of the attribute.
#include "ops/conv_common.h"
#include "ops/matmul_common.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr int64_t kLeastDepth = 32, kLeastColumns = 16;  // kernels/rounded_gemm.h has such panels

bool is_weight(const Edge* edge) {
  return edge != nullptr && edge->data != nullptr && !edge->persistent &&
         edge->facts.type.type == ElementType::kFloat;
}

bool is_large(int64_t depth, int64_t columns) {
  return depth >= kLeastDepth && columns >= kLeastColumns;
}

bool is_rounded_matmul(const Node& node) {
  if (!is_op(&node, "MatMul") && !is_op(&node, "FusedMatMul", kPlimsollDomain)) return false;
  const Edge *a = node.input(kMatMulA), *b = node.input(kMatMulB);
  if (!is_weight(b) || rank_of(b) != 2 || rank_of(a) < 2) return false;
  const bool swapped = is_swapped(*static_cast<const MatMulAttrs*>(node.attrs));
  const std::span<const Dim> dims = b->facts.type.dims;
  return is_large(dims[swapped ? 1 : 0].value(), dims[swapped ? 0 : 1].value());
}

bool is_rounded_conv(const Node& node) {
  if (!is_op(&node, "Conv", kPlimsollDomain) && !is_op(&node, "FusedConv", kPlimsollDomain)) return false;
  const Edge *w = node.input(kConvW), *scale = node.input(kConvScale);
  if (!is_weight(w) || (scale != nullptr && !is_weight(scale)) || rank_of(w) != 4) return false;
  ConvAttrs attrs = *static_cast<const ConvAttrs*>(node.attrs);
  attrs.rounded = true;
  std::vector<int64_t> dims;
  for (const Dim dim : w->facts.type.dims) dims.push_back(dim.value());
  return is_fit_for_rounded(attrs, ElementType::kFloat, dims) &&
         is_large(attrs.channels_of(dims[1]) * dims[2] * dims[3], dims[0]);
}

}  // namespace

bool round_products(Graph& root, const OptimizeOptions& options) {
  if (!options.round_products) return false;
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      const bool is_matmul = is_rounded_matmul(*node);
      if (!is_matmul && !is_rounded_conv(*node)) continue;
      AttributeList attributes(editor.arena(), *node);
      attributes.set("rounded", int64_t{1});
      const std::vector<Edge*> inputs(node->inputs.begin(), node->inputs.end());
      editor.become(*node, kPlimsollDomain, is_matmul ? "FusedMatMul" : node->op_type, inputs,
                    attributes.list());
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
