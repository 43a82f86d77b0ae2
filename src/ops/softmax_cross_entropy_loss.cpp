#include "ops/loss_common.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_loss(c, true);
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 20;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void gradient(GradientContext& c) {
  gradient_loss(c, true);
}

}  // namespace

extern const OpDef op_softmax_cross_entropy_loss = {
    .name = "SoftmaxCrossEntropyLoss",
    .inputs = {2, 3},
    .outputs = {1, 2},
    .attrs = loss_attrs,
    .infer = infer_loss,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
