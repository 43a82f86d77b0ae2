// Which products with constant matrices are made by Strassen's way (kernels/strassen.h), 1x1 convolutions
// among them: those whose shape is worth it, or may turn out to be. It takes scratch, about a megabyte for
// each thread.
#include <algorithm>

#include "kernels/strassen.h"
#include "ops/conv_common.h"
#include "ops/matmul_common.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool is_weight(const Edge* edge, int64_t rank) {
  return edge != nullptr && edge->constant != nullptr && !edge->persistent &&
         edge->facts.type.type == ElementType::kFloat && rank_of(edge) == rank && edge->facts.is_concrete();
}

// How many elements, of dimensions that are not known yet as many as it takes.
int64_t count(std::span<const Dim> dims) {
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t result = 1;
  for (const Dim dim : dims) {
    if (!dim.is_constant()) return kMany;
    result = checked_mul(result, dim.value());
  }
  return result;
}

// Which rows lie side by side, `select` sees.
kernels::GemmShape matmul_of(const Node& node) {
  const auto& attrs = *static_cast<const MatMulAttrs*>(node.attrs);
  const Edge *a = node.input(kMatMulA), *b = node.input(kMatMulB);
  if (!is_weight(b, 2) || rank_of(a) < 2 || attrs.rounded) return {};
  const std::span<const Dim> dims = b->facts.type.dims;
  const bool swapped = is_swapped(attrs);
  const int64_t k = dims[swapped ? 1 : 0].value(), n = dims[swapped ? 0 : 1].value();
  return k == 0 ? kernels::GemmShape() : kernels::GemmShape{count(a->facts.type.dims) / k, k, n};
}

kernels::GemmShape conv_of(const Node& node) {
  const auto& attrs = *static_cast<const ConvAttrs*>(node.attrs);
  const Edge *w = node.input(kConvW), *y = node.outputs[0];
  if (!is_weight(w, 4) || rank_of(y) != 4 || attrs.groups != 1 || attrs.rounded ||
      !attrs.window.channels_last)
    return {};
  const std::span<const Dim> dims = w->facts.type.dims;
  if (dims[2].value() != 1 || dims[3].value() != 1) return {};
  return {count(y->facts.type.dims.first(3)), attrs.channels_of(dims[1].value()), dims[0].value()};
}

}  // namespace

bool use_strassen(Graph& root, const OptimizeOptions& options) {
  if (!options.winograd || !options.spend_memory || options.trains) return false;
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      const bool is_matmul = is_op(node, "MatMul") || is_op(node, "FusedMatMul", kPlimsollDomain);
      const bool is_conv = is_op(node, "Conv", kPlimsollDomain) || is_op(node, "FusedConv", kPlimsollDomain);
      if (!is_matmul && !is_conv) continue;
      if (!kernels::strassen_pays(is_matmul ? matmul_of(*node) : conv_of(*node))) continue;
      AttributeList attributes(editor.arena(), *node);
      attributes.set("strassen", int64_t{1});
      const std::vector<Edge*> inputs(node->inputs.begin(), node->inputs.end());
      editor.become(*node, kPlimsollDomain, is_matmul ? "FusedMatMul" : node->op_type, inputs,
                    attributes.list());
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
