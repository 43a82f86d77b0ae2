// RMSprop, as PyTorch has it. States: mean of squares, mean (if centered), momentum (if any).
#include "ops/update_common.h"

namespace plimsoll {
namespace {

struct Attrs {
  float clip = 0;
  float weight_decay = 0;
  float alpha = 0.99f;
  float momentum = 0;
  float epsilon = 1e-8f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->clip = c.real("clip", 0);
  a->weight_decay = c.real("weight_decay", 0);
  a->alpha = c.real("alpha", 0.99f);
  a->momentum = c.real("momentum", 0);
  expect_state_for_momentum(c, a->momentum, kFirstState + 2);
  a->epsilon = c.real("epsilon", 1e-8f);
  return a;
}

void run(const RunContext& c) {
  if (!begin_update(c)) return;
  const auto& a = c.attrs<Attrs>();
  kernels::RmsPropUpdate how;
  how.change = gradient_change(c, a.clip, decimal(a.weight_decay));
  how.rate = update_rate(c);
  how.alpha = decimal(a.alpha), how.epsilon = decimal(a.epsilon);
  how.centered = c.has_output(2);
  how.momentum = c.has_output(3) ? decimal(a.momentum) : 0;
  run_update(c, how);
}

}  // namespace

extern const OpDef op_update_rms_prop = {
    .domain = kPlimsollDomain,
    .name = "UpdateRmsProp",
    .inputs = {kFirstState + 1, kFirstState + 3},
    .outputs = {2, 4},
    .attrs = attrs,
    .infer = infer_update,
    .alias = alias_update,
    .run = run,
    .optional_inputs = kOptionalUpdateInputs,
};

}  // namespace plimsoll
