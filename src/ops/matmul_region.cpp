#include "ops/matmul_common.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

// The axes of an operand in the order in which the product sees them.
std::vector<size_t> seen_axes(size_t rank, std::span<const int64_t> perm, bool transposed) {
  std::vector<size_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = perm.size() == rank ? static_cast<size_t>(perm[i]) : i;
  if (transposed && rank >= 2) std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}

// What an operand needs of its batch axes; `product` is what is wanted before perm_y.
void need_batch(RegionContext& c, size_t input, const std::vector<size_t>& axes, const Region& product,
                size_t batch_rank) {
  for (size_t i = 0; i + 2 < axes.size(); ++i) {
    if (c.size(input, axes[i]) != 1) c.needs[input][axes[i]] = product[batch_rank - (axes.size() - 2) + i];
  }
}

}  // namespace

void region_matmul(RegionContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  Region product(c.wanted().begin(), c.wanted().end());
  for (size_t i = 0; i < attrs.perm_y.size(); ++i)
    product[static_cast<size_t>(attrs.perm_y[i])] = c.wanted(i);
  const auto a = seen_axes(c.rank(kMatMulA), attrs.perm_a, attrs.trans_a);
  const auto b = seen_axes(c.rank(kMatMulB), attrs.perm_b, attrs.trans_b);
  const size_t batch_rank = product.size() - (a.size() > 1 ? 1 : 0) - (b.size() > 1 ? 1 : 0);
  need_batch(c, kMatMulA, a, product, batch_rank);
  need_batch(c, kMatMulB, b, product, batch_rank);
  if (a.size() > 1) c.needs[kMatMulA][a[a.size() - 2]] = product[batch_rank];
  if (b.size() > 1) c.needs[kMatMulB][b.back()] = product.back();
  if (c.has_input(kMatMulBias)) need_broadcast(c, kMatMulBias);
  if (c.has_input(kMatMulAddend)) need_broadcast(c, kMatMulAddend);
  c.runs_on_parts = true;
}

}  // namespace plimsoll
