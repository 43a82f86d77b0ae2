// Adam, and AdamW in the order of PyTorch (the weights decay first) and of Hugging Face (last).
#include "ops/update_common.h"

namespace plimsoll {
namespace {

enum DecayMode : int64_t { kInGradient = 0, kFirst = 1, kLast = 2 };

struct Attrs {
  float clip = 0;
  float weight_decay = 0;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  int64_t decay_mode = kInGradient;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->clip = c.real("clip", 0);
  a->weight_decay = c.real("weight_decay", 0);
  a->beta1 = c.real("beta1", 0.9f);
  a->beta2 = c.real("beta2", 0.999f);
  a->epsilon = c.real("epsilon", 1e-8f);
  a->decay_mode = c.integer("decay_mode", kInGradient);
  if (a->decay_mode < kInGradient || a->decay_mode > kLast)
    c.reject("attribute 'decay_mode': expected {} to {}, found {}", int64_t{kInGradient}, int64_t{kLast},
             a->decay_mode);
  return a;
}

void run(const RunContext& c) {
  if (!begin_update(c)) return;
  const auto& a = c.attrs<Attrs>();
  const double step = update_step(c), rate = update_rate(c);
  const double beta1 = decimal(a.beta1), beta2 = decimal(a.beta2), decay = decimal(a.weight_decay);
  const double mean_bias = 1 - std::pow(beta1, step), square_bias = 1 - std::pow(beta2, step);
  kernels::AdamUpdate how;
  how.change = gradient_change(c, a.clip, a.decay_mode == kInGradient ? decay : 0);
  how.beta1 = beta1, how.beta2 = beta2, how.epsilon = decimal(a.epsilon);
  if (a.decay_mode == kLast) {
    how.rate = rate * std::sqrt(square_bias) / mean_bias;
    how.keep_after = 1 - rate * decay;
  } else {
    how.rate = rate / mean_bias;
    how.root_scale = 1 / std::sqrt(square_bias);
    how.keep = a.decay_mode == kFirst ? 1 - rate * decay : 1;
  }
  run_update(c, how);
}

}  // namespace

extern const OpDef op_update_adam = {
    .domain = kPlimsollDomain,
    .name = "UpdateAdam",
    .inputs = {kFirstState + 2, kFirstState + 2},
    .outputs = {3, 3},
    .attrs = attrs,
    .infer = infer_update,
    .alias = alias_update,
    .run = run,
    .optional_inputs = kOptionalUpdateInputs,
};

}  // namespace plimsoll
