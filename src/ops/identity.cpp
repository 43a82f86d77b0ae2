#include <cstring>

#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  c.set_output_facts(0, c.input(0));
}

void alias(AliasContext& c) {
  c.view(0);
}

void run(const RunContext& c) {
  std::memmove(c.outputs[0].data, c.inputs[0].data, static_cast<size_t>(c.inputs[0].bytes()));
}

}  // namespace

extern const OpDef op_identity = {
    .name = "Identity",
    .infer = infer,
    .alias = alias,
    .run = run,
    .layout = layout_unary,
    .region = region_broadcasting,
};

}  // namespace plimsoll
