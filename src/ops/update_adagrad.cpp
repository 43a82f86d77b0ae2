// Adagrad, as PyTorch has it.
#include "ops/update_common.h"

namespace plimsoll {
namespace {

struct Attrs {
  float clip = 0;
  float weight_decay = 0;
  float rate_decay = 0;
  float epsilon = 1e-10f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->clip = c.real("clip", 0);
  a->weight_decay = c.real("weight_decay", 0);
  a->rate_decay = c.real("rate_decay", 0);
  a->epsilon = c.real("epsilon", 1e-10f);
  return a;
}

void run(const RunContext& c) {
  if (!begin_update(c)) return;
  const auto& a = c.attrs<Attrs>();
  kernels::AdagradUpdate how;
  how.change = gradient_change(c, a.clip, decimal(a.weight_decay));
  how.rate = update_rate(c) / (1 + (update_step(c) - 1) * decimal(a.rate_decay));
  how.epsilon = decimal(a.epsilon);
  run_update(c, how);
}

}  // namespace

extern const OpDef op_update_adagrad = {
    .domain = kPlimsollDomain,
    .name = "UpdateAdagrad",
    .inputs = {kFirstState + 1, kFirstState + 1},
    .outputs = {2, 2},
    .attrs = attrs,
    .infer = infer_update,
    .alias = alias_update,
    .run = run,
    .optional_inputs = kOptionalUpdateInputs,
};

}  // namespace plimsoll
