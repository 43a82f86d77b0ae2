#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  c.set_output(0, ElementType::kInt64, std::span<const Dim>());
  if (c.ranked(0)) c.set_values(0, {product(c.dims(0))});
}

void run(const RunContext& c) {
  *c.outputs[0].as<int64_t>() = c.inputs[0].elements();
}

void layout(LayoutContext& c) {
  c.either({0});
  c.keep_output(0);
}

}  // namespace

extern const OpDef op_size = {
    .name = "Size",
    .infer = infer,
    .run = run,
    .layout = layout,
    .unaligned_inputs = 1,
    .gradient = no_gradient,
};

}  // namespace plimsoll
