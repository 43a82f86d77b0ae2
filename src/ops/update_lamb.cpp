// Lamb: Adam whose step is scaled, parameter by parameter, by the ratio of the norms of weights and
// direction.
#include "ops/update_common.h"

namespace plimsoll {
namespace {

struct Attrs {
  float clip = 0;
  float weight_decay = 0;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-6f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->clip = c.real("clip", 0);
  a->weight_decay = c.real("weight_decay", 0);
  a->beta1 = c.real("beta1", 0.9f);
  a->beta2 = c.real("beta2", 0.999f);
  a->epsilon = c.real("epsilon", 1e-6f);
  return a;
}

// The norms of each chunk, added in their order whatever the number of threads.
const void* select(SelectContext& c) {
  const Dim chunks = ceil_div(product(c.dims(kParameter)), Dim(kUpdateChunk));
  c.scratch(chunks * Dim(static_cast<int64_t>(sizeof(kernels::LambNorms))));
  return nullptr;
}

void run(const RunContext& c) {
  if (!begin_update(c)) return;
  const auto& a = c.attrs<Attrs>();
  const double step = update_step(c), beta1 = decimal(a.beta1), beta2 = decimal(a.beta2);
  kernels::LambUpdate how;
  how.change = gradient_change(c, a.clip, 0);
  how.beta1 = beta1, how.beta2 = beta2, how.epsilon = decimal(a.epsilon), how.decay = decimal(a.weight_decay);
  how.mean_scale = 1 / (1 - std::pow(beta1, step));
  how.square_scale = 1 / (1 - std::pow(beta2, step));
  auto* norms = c.scratch_as<kernels::LambNorms>(0);
  for_update_chunks(
      c, [&](int64_t chunk, const auto& range) { norms[chunk] = kernels::update_moments(how, range); });
  kernels::LambNorms all;
  for (int64_t chunk = 0; chunk * kUpdateChunk < c.outputs[0].elements(); ++chunk) {
    all.weight += norms[chunk].weight;
    all.direction += norms[chunk].direction;
  }
  const bool has_ratio = all.weight > 0 && all.direction > 0;
  how.rate = update_rate(c) * (has_ratio ? std::sqrt(all.weight / all.direction) : 1);
  for_update_chunks(c, [&](int64_t, const auto& range) { kernels::update_weights(how, range); });
}

}  // namespace

extern const OpDef op_update_lamb = {
    .domain = kPlimsollDomain,
    .name = "UpdateLamb",
    .inputs = {kFirstState + 2, kFirstState + 2},
    .outputs = {3, 3},
    .attrs = attrs,
    .infer = infer_update,
    .alias = alias_update,
    .select = select,
    .run = run,
    .optional_inputs = kOptionalUpdateInputs,
};

}  // namespace plimsoll
