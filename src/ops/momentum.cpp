#include "ops/training_common.h"

namespace plimsoll {
namespace {

struct MomentumAttrs {
  float alpha = 0, beta = 0, norm = 0;
  bool nesterov = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<MomentumAttrs>();
  a->alpha = c.real("alpha");
  a->beta = c.real("beta");
  a->norm = c.real("norm_coefficient");
  const std::string_view mode = c.text("mode");
  a->nesterov = mode == "nesterov";
  if (!a->nesterov && mode != "standard")
    c.reject("attribute 'mode': expected standard or nesterov, found '{}'", mode);
  return a;
}

void infer(InferContext& c) {
  infer_training(c, 1);
}
void alias(AliasContext& c) {
  alias_training(c, 1);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<MomentumAttrs>();
  const double rate = learning_rate(c);
  const float beta = update_count(c) > 0 ? a.beta : 1;
  run_training(c, 1, [&](const auto& t, int64_t i) {
    using T = std::decay_t<decltype(*t.x_new)>;
    const T alpha = static_cast<T>(a.alpha);
    const T x = t.x[i], g = static_cast<T>(a.norm) * x + t.gradient[i];
    const T v = alpha * t.state[0][i] + static_cast<T>(beta) * g;
    t.state_new[0][i] = v;
    t.x_new[i] = x - static_cast<T>(rate) * (a.nesterov ? g + alpha * v : v);
  });
}

}  // namespace

extern const OpDef op_momentum = {
    .domain = kTrainingDomain,
    .name = "Momentum",
    .inputs = {3, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
