// What the passes make of MatMul and its neighbours. See MatMulAttrs.
#include <algorithm>

#include "ops/activation_attr.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<MatMulAttrs>();
  a->alpha = c.real("alpha", 1.0f);
  a->trans_a = c.integer("trans_a", 0) != 0;
  a->trans_b = c.integer("trans_b", 0) != 0;
  a->perm_a = c.integers("perm_a");
  a->perm_b = c.integers("perm_b");
  a->perm_y = c.integers("perm_y");
  a->activation = read_activation(c);
  a->strassen = c.integer("strassen", 0) != 0;
  a->rounded = c.integer("rounded", 0) != 0;
  return a;
}

// Throws unless input i is absent or has exactly these dimensions, as far as both are known.
void expect_like(const InferContext& c, size_t i, std::span<const Dim> expected) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const auto found = c.dims(i);
  const bool fits = std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                               [](Dim a, Dim b) { return !a.is_constant() || !b.is_constant() || a == b; });
  if (!fits) c.reject("input {}: expected shape {}, found {}", i, to_string(expected), to_string(found));
}

void infer(InferContext& c) {
  infer_matmul(c);
  if (!c.output(0).type.ranked || (!c.has_input(kMatMulBias) && !c.has_input(kMatMulAddend))) return;
  c.expect_rank(kMatMulA, 2, InferContext::kMaxRank);
  c.expect_rank(kMatMulB, 2, InferContext::kMaxRank);
  const std::span<const Dim> y = c.output(0).type.dims;
  expect_like(c, kMatMulBias, y.last(1));
  expect_like(c, kMatMulAddend, y);
}

}  // namespace

extern const OpDef op_fused_matmul = {
    .domain = kPlimsollDomain,
    .name = "FusedMatMul",
    .inputs = {2, 4},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_matmul,
    .select = select_matmul,
    .pack = pack_matmul,
    .run = run_matmul,
    .cost = cost_matmul,
    .region = region_matmul,
};

}  // namespace plimsoll
