#include "optimize/fused.h"
#include "optimize/residual.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

std::optional<std::vector<Edge*>> with_addend(const Node* conv, Edge* addend) {
  ConvInputs in = open_conv(conv);
  if (in.x == nullptr || in.addend != nullptr || rank_of(addend) < 3) return std::nullopt;
  in.addend = addend;
  return in.list();
}

}  // namespace

bool fuse_conv_residual(Graph& root, const OptimizeOptions& options) {
  return fuse_residuals(root, {"FusedConv", with_addend}, options);
}

}  // namespace plimsoll
