#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  if (c.input(0).type.kind == ValueKind::kTensor) c.expect_type(0, kViewTypes);
  c.set_output_facts(0, c.input(0));
}

void alias(AliasContext& c) {
  c.view(0);
}

void run(const RunContext& c) {
  kernels::copy_bytes(c.outputs[0].data, c.inputs[0].data, c.inputs[0].bytes());
}

void run_values(ValueRun& run) {
  run.set_output(0, run.input(0));
}

void lower(LowerContext& c) {
  if (const KnownElements elements = c.elements(0)) c.consists_of(0, elements);
}

void gradient(GradientContext& c) {
  c.set(0, c.gradient());
}

}  // namespace

extern const OpDef op_identity = {
    .name = "Identity",
    .infer = infer,
    .alias = alias,
    .run = run,
    .run_values = run_values,
    .lower = lower,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
