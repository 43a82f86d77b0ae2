#include "ops/qlinear_binary.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_qlinear_binary(c, [](float a, float b) { return a * b; });
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
