#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return c.make<MatMulAttrs>();
}

}  // namespace

extern const OpDef op_mat_mul = {
    .name = "MatMul",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer_matmul,
    .select = select_matmul,
    .pack = pack_matmul,
    .run = run_matmul,
    .cost = cost_matmul,
    .region = region_matmul,
};

}  // namespace plimsoll
