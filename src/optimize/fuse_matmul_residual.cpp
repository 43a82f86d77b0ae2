#include "optimize/fused.h"
#include "optimize/residual.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

std::optional<std::vector<Edge*>> with_addend(const Node* product, Edge* addend) {
  MatMulInputs in = open_matmul(product);
  if (in.a == nullptr || in.addend != nullptr || rank_of(in.a) < 2 || rank_of(in.b) < 2) return std::nullopt;
  in.addend = addend;
  return in.list();
}

}  // namespace

bool fuse_matmul_residual(Graph& root, const OptimizeOptions& options) {
  return fuse_residuals(root, {"FusedMatMul", with_addend}, options);
}

}  // namespace plimsoll
