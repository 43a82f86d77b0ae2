#include "ops/loss_common.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_loss(c, false);
}

void gradient(GradientContext& c) {
  gradient_loss(c, false);
}

}  // namespace

extern const OpDef op_negative_log_likelihood_loss = {
    .name = "NegativeLogLikelihoodLoss",
    .inputs = {2, 3},
    .attrs = loss_attrs,
    .infer = infer_loss,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
