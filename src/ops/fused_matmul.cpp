// What the passes make of MatMul and its neighbours. See MatMulAttrs.
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
  return a;
}

}  // namespace

extern const OpDef op_fused_matmul = {
    .domain = kPlimsollDomain,
    .name = "FusedMatMul",
    .inputs = {2, 4},
    .attrs = attrs,
    .infer = infer_matmul,
    .alias = alias_matmul,
    .packs = packs_matmul,
    .pack = pack_matmul,
    .select = select_matmul,
    .bind = bind_matmul,
    .run = run_matmul,
    .cost = cost_matmul,
};

}  // namespace plimsoll
