// ReluGradient(Y, dY): dY where Relu's output is positive, else 0. One pass in place of a comparison and a
// choice, the most frequent of all gradients.
#include "kernels/binary.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  expect_same_dims(c, 0, 1);
  set_output_like(c, 0, c.type(0), 1);
}

void alias(AliasContext& c) {
  c.overwrite(1);
  c.overwrite(0);
}

void run(const RunContext& c) {
  const int64_t count[] = {c.outputs[0].elements()};
  const kernels::Broadcast plan(count, {count, count});
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    plan.for_each(c.threads, [&](const kernels::BroadcastBlock& block) {
      kernels::binary(kernels::BinaryKind::kGate, block, c.inputs[0].as<T>(), c.inputs[1].as<T>(),
                      c.outputs[0].as<T>());
    });
  });
}

void layout(LayoutContext& c) {
  c.either({0, 1});
}

}  // namespace

extern const OpDef op_relu_gradient = {
    .domain = kPlimsollDomain,
    .name = "ReluGradient",
    .inputs = {2, 2},
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout,
};

}  // namespace plimsoll
