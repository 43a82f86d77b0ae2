#include "ops/qlinear_binary.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  const float scale = scale_at(c, kQlAScale) * scale_at(c, kQlBScale) / scale_at(c, kQlCScale);
  run_qlinear_binary(c, [&](const kernels::ByteOperands& x, int64_t count, uint8_t* to) {
    kernels::multiply_8(x, count, scale, to);
  });
}

}  // namespace

extern const OpDef op_qlinear_mul = {
    .domain = kMicrosoftDomain,
    .name = "QLinearMul",
    .inputs = {7, 8},
    .infer = infer_qlinear_binary,
    .run = run,
    .layout = layout_qlinear_binary,
    .optional_inputs = (1u << kQlAZero) | (1u << kQlBZero),
};

}  // namespace plimsoll
