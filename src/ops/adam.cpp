#include <cmath>

#include "ops/training_common.h"

namespace plimsoll {
namespace {

struct AdamAttrs {
  float alpha = 0.9f, beta = 0.999f, epsilon = 0, norm = 0, norm_post = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<AdamAttrs>();
  a->alpha = c.real("alpha", 0.9f);
  a->beta = c.real("beta", 0.999f);
  a->epsilon = c.real("epsilon", 0.0f);
  a->norm = c.real("norm_coefficient", 0.0f);
  a->norm_post = c.real("norm_coefficient_post", 0.0f);
  return a;
}

void infer(InferContext& c) {
  infer_training(c, 2);
}
void alias(AliasContext& c) {
  alias_training(c, 2);
}

// The averages start at zero: at first the rate is corrected for that.
double adjusted_rate(const RunContext& c, const AdamAttrs& a) {
  const double rate = learning_rate(c), count = static_cast<double>(update_count(c));
  if (!(count > 0)) return rate;
  return rate * std::sqrt(1 - std::pow(static_cast<double>(a.beta), count)) /
         (1 - std::pow(static_cast<double>(a.alpha), count));
}

void run(const RunContext& c) {
  const auto& a = c.attrs<AdamAttrs>();
  const double rate = adjusted_rate(c, a);
  run_training(c, 2, [&](const auto& t, int64_t i) {
    using T = std::decay_t<decltype(*t.x_new)>;
    const T alpha = static_cast<T>(a.alpha), beta = static_cast<T>(a.beta);
    const T x = t.x[i], g = static_cast<T>(a.norm) * x + t.gradient[i];
    const T v = alpha * t.state[0][i] + (1 - alpha) * g;
    const T h = beta * t.state[1][i] + (1 - beta) * (g * g);
    t.state_new[0][i] = v;
    t.state_new[1][i] = h;
    const T moved = x - static_cast<T>(rate) * (v / (std::sqrt(h) + static_cast<T>(a.epsilon)));
    t.x_new[i] = (1 - static_cast<T>(a.norm_post)) * moved;
  });
}

}  // namespace

extern const OpDef op_adam = {
    .domain = kTrainingDomain,
    .name = "Adam",
    .inputs = {3, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
