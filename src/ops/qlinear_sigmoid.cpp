#include "ops/elementwise.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  expect_qlinear_unary(c);
  set_output_like(c, 0, c.type(kUnaryX), kUnaryX);
}

void run(const RunContext& c) {
  run_byte_table(c,
                 [](float x) { return static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(x)))); });
}

}  // namespace

extern const OpDef op_qlinear_sigmoid = {
    .domain = kMicrosoftDomain,
    .name = "QLinearSigmoid",
    .inputs = {4, 5},
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
