#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_binary<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a != 0) != (b != 0); });
}

}  // namespace

extern const OpDef op_xor = {
    .name = "Xor",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer_logical,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
