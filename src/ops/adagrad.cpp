#include <cmath>

#include "ops/training_common.h"

namespace plimsoll {
namespace {

struct AdagradAttrs {
  float decay = 0, epsilon = 0, norm = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<AdagradAttrs>();
  a->decay = c.real("decay_factor", 0.0f);
  a->epsilon = c.real("epsilon", 0.0f);
  a->norm = c.real("norm_coefficient", 0.0f);
  return a;
}

void infer(InferContext& c) {
  infer_training(c, 1);
}
void alias(AliasContext& c) {
  alias_training(c, 1);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<AdagradAttrs>();
  const double rate =
      learning_rate(c) / (1 + static_cast<double>(update_count(c)) * static_cast<double>(a.decay));
  run_training(c, 1, [&](const auto& t, int64_t i) {
    using T = std::decay_t<decltype(*t.x_new)>;
    const T x = t.x[i], g = static_cast<T>(a.norm) * x + t.gradient[i];
    const T h = t.state[0][i] + g * g;
    t.state_new[0][i] = h;
    t.x_new[i] = x - static_cast<T>(rate) * g / (std::sqrt(h) + static_cast<T>(a.epsilon));
  });
}

}  // namespace

extern const OpDef op_adagrad = {
    .domain = kTrainingDomain,
    .name = "Adagrad",
    .inputs = {3, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
