#include "ops/qlinear_binary.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  const float y = scale_at(c, kQlCScale), a = scale_at(c, kQlAScale) / y, b = scale_at(c, kQlBScale) / y;
  run_qlinear_binary(c, [&](const kernels::ByteOperands& x, int64_t count, uint8_t* to) {
    kernels::add_8(x, count, a, b, to);
  });
}

}  // namespace

extern const OpDef op_qlinear_add = {
    .domain = kMicrosoftDomain,
    .name = "QLinearAdd",
    .inputs = {7, 8},
    .infer = infer_qlinear_binary,
    .run = run,
    .layout = layout_qlinear_binary,
    .optional_inputs = (1u << kQlAZero) | (1u << kQlBZero),
};

}  // namespace plimsoll
