#include "ops/matmul_common.h"
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

struct FusedMatMulAttrs : MatMulAttrs {
  bool batch_a = false, batch_b = false;  // the first dimension is seen behind the batch
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<FusedMatMulAttrs>();
  a->alpha = c.real("alpha", 1.0f);
  a->trans_a = c.integer("transA", 0) != 0;
  a->trans_b = c.integer("transB", 0) != 0;
  a->batch_a = c.integer("transBatchA", 0) != 0;
  a->batch_b = c.integer("transBatchB", 0) != 0;
  return a;
}

// How an operand is seen: empty if as it is.
std::vector<int64_t> permutation(const NodeContext& c, size_t i, bool moves_batch) {
  if (!moves_batch) return {};
  if (!c.ranked(i))
    fail(ErrorCode::kNotImplemented, "{}: transBatch of an input whose rank is unknown", c.node().label());
  const auto rank = static_cast<int64_t>(c.rank(i));
  if (rank < 3) return {};
  std::vector<int64_t> perm;
  for (int64_t d = 1; d + 1 < rank; ++d) perm.push_back(d);
  perm.push_back(0);
  perm.push_back(rank - 1);
  return perm;
}

AttributeList ours(const NodeContext& c, BumpArena& arena) {
  const auto& a = c.attrs<FusedMatMulAttrs>();
  const auto is_matrix = [&](size_t i) { return !c.ranked(i) || c.rank(i) > 1; };
  AttributeList list(arena);
  list.set("alpha", a.alpha);
  list.set("trans_a", int64_t{a.trans_a && is_matrix(kMatMulA)});
  list.set("trans_b", int64_t{a.trans_b && is_matrix(kMatMulB)});
  const std::vector<int64_t> perm_a = permutation(c, kMatMulA, a.batch_a);
  const std::vector<int64_t> perm_b = permutation(c, kMatMulB, a.batch_b);
  if (!perm_a.empty()) list.set("perm_a", std::span<const int64_t>(perm_a));
  if (!perm_b.empty()) list.set("perm_b", std::span<const int64_t>(perm_b));
  return list;
}

}  // namespace

extern const OpDef op_fused_matmul;

namespace {

void infer(InferContext& c) {
  const AttributeList list = ours(c, c.arena());
  infer_as(c, op_fused_matmul, kPlimsollDomain, 1, facts_of_inputs(c), list.list());
}

void decompose(DecomposeContext& c) {
  const AttributeList list = ours(c, c.build.graph().arena());
  c.build.emit_into(c.node().outputs, kPlimsollDomain, "FusedMatMul", c.node().inputs, list.list());
}

}  // namespace

extern const OpDef op_microsoft_fused_matmul = {.domain = kMicrosoftDomain,
                                                .name = "FusedMatMul",
                                                .inputs = {2, 2},
                                                .attrs = attrs,
                                                .infer = infer,
                                                .decompose = decompose};

}  // namespace plimsoll
