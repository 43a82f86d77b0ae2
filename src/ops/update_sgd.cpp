// Stochastic gradient descent with momentum, as PyTorch has it.
#include "ops/update_common.h"

namespace plimsoll {
namespace {

struct Attrs {
  float clip = 0;
  float weight_decay = 0;
  float momentum = 0;
  float dampening = 0;
  bool nesterov = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->clip = c.real("clip", 0);
  a->weight_decay = c.real("weight_decay", 0);
  a->momentum = c.real("momentum", 0);
  expect_state_for_momentum(c, a->momentum, kFirstState);
  a->dampening = c.real("dampening", 0);
  a->nesterov = c.integer("nesterov", 0) != 0;
  return a;
}

void run(const RunContext& c) {
  if (!begin_update(c)) return;
  const auto& a = c.attrs<Attrs>();
  kernels::SgdUpdate how;
  how.change = gradient_change(c, a.clip, decimal(a.weight_decay));
  how.rate = update_rate(c);
  how.momentum = c.has_output(1) ? decimal(a.momentum) : 0;
  how.dampening = decimal(a.dampening);
  how.nesterov = a.nesterov;
  how.first = update_step(c) <= 1;
  run_update(c, how);
}

}  // namespace

extern const OpDef op_update_sgd = {
    .domain = kPlimsollDomain,
    .name = "UpdateSgd",
    .inputs = {kFirstState + 0, kFirstState + 1},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer_update,
    .alias = alias_update,
    .run = run,
    .optional_inputs = kOptionalUpdateInputs,
};

}  // namespace plimsoll
