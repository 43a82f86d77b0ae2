#include "ops/elementwise.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

struct LeakyAttrs {
  float alpha = 0.01f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<LeakyAttrs>();
  a->alpha = c.real("alpha", 0.01f);
  return a;
}

void infer(InferContext& c) {
  expect_qlinear_unary(c);
  set_output_like(c, 0, c.type(kUnaryX), kUnaryX);
}

void run(const RunContext& c) {
  const float alpha = c.attrs<LeakyAttrs>().alpha;
  run_byte_table(c, [&](float x) { return x < 0 ? alpha * x : x; });
}

}  // namespace

extern const OpDef op_qlinear_leaky_relu = {
    .domain = kMicrosoftDomain,
    .name = "QLinearLeakyRelu",
    .inputs = {4, 5},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
