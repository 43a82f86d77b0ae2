#include "ops/softmax_family.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_softmax(c, false);
}

void gradient(GradientContext& c) {
  gradient_softmax(c, false);
}

}  // namespace

extern const OpDef op_softmax = {
    .name = "Softmax",
    .attrs = softmax_attrs,
    .infer = infer_softmax,
    .alias = alias_softmax,
    .select = select_softmax,
    .run = run,
    .cost = cost_softmax,
    .layout = layout_softmax,
    .region = region_softmax,
    .gradient = gradient,
};

}  // namespace plimsoll
