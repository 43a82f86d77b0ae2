#include <algorithm>

#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

std::span<const Dim> batch_of(const std::vector<Dim>& dims) {
  return std::span<const Dim>(dims).first(dims.size() - 2);
}

bool is_permutation(std::span<const int64_t> perm, size_t rank) {
  std::vector<bool> found(rank, false);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank) || found[static_cast<size_t>(p)]) return false;
    found[static_cast<size_t>(p)] = true;
  }
  return perm.size() == rank;
}

void check_perm(const InferContext& c, std::span<const int64_t> perm, size_t rank) {
  if (!perm.empty() && !is_permutation(perm, rank))
    c.reject("{} is not a permutation of {} dimensions", to_string(perm), rank);
}

}  // namespace

void infer_matmul(InferContext& c) {
  const auto& a = c.attrs<MatMulAttrs>();
  const TypeSet allowed = kFloatTypes | types(ElementType::kInt32, ElementType::kInt64, ElementType::kUint32,
                                              ElementType::kUint64);
  c.expect_type(kMatMulA, allowed);
  c.expect_same_type(kMatMulA, kMatMulB);
  if (!c.ranked(kMatMulA) || !c.ranked(kMatMulB)) return c.set_unranked_output(0, c.type(0));
  if (c.rank(kMatMulA) == 0 || c.rank(kMatMulB) == 0)
    c.reject("expected operands of rank 1 or more, found a scalar");
  check_perm(c, a.perm_a, c.rank(kMatMulA));
  check_perm(c, a.perm_b, c.rank(kMatMulB));
  const std::vector<Dim> left = seen_dims(c.dims(kMatMulA), a.perm_a, a.trans_a, true);
  const std::vector<Dim> right = seen_dims(c.dims(kMatMulB), a.perm_b, a.trans_b, false);
  const Dim inner_left = left.back(), inner_right = right[right.size() - 2];
  if (inner_left.is_constant() && inner_right.is_constant() && !(inner_left == inner_right))
    c.reject("inner dimensions {} and {} differ", inner_left.value(), inner_right.value());
  std::vector<Dim> dims = c.broadcast(batch_of(left), batch_of(right));
  if (c.rank(kMatMulA) > 1) dims.push_back(left[left.size() - 2]);
  if (c.rank(kMatMulB) > 1) dims.push_back(right.back());
  if (!a.perm_y.empty()) {
    check_perm(c, a.perm_y, dims.size());
    if (a.perm_y.back() != static_cast<int64_t>(dims.size()) - 1)
      c.reject("perm_y {} must keep the last dimension last", to_string(a.perm_y));
    std::vector<Dim> permuted;
    for (int64_t p : a.perm_y) permuted.push_back(dims[static_cast<size_t>(p)]);
    dims = permuted;
  }
  if (c.has_input(kMatMulBias)) c.expect_same_type(kMatMulA, kMatMulBias);
  if (c.has_input(kMatMulAddend)) c.expect_same_type(kMatMulA, kMatMulAddend);
  c.set_output(0, c.type(0), dims);
}

void alias_matmul(AliasContext& c) {
  if (!c.has_input(kMatMulAddend)) return;
  const auto x = c.dims(kMatMulAddend), y = c.output(0).type.dims;
  if (std::equal(x.begin(), x.end(), y.begin(), y.end())) c.overwrite(kMatMulAddend);
}

Cost cost_matmul(const NodeContext& c) {
  const auto& a = c.attrs<MatMulAttrs>();
  const Dim inner = seen_dims(c.dims(kMatMulA), a.perm_a, a.trans_a, true).back();
  const double operations =
      2.0 * static_cast<double>(product(c.output(0).type.dims).value()) * static_cast<double>(inner.value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace plimsoll
