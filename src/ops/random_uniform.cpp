#include "graph/gradient.h"
#include "ops/random_source.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return random_attrs(c, Distribution::kUniform, true);
}

}  // namespace

extern const OpDef op_random_uniform = {
    .name = "RandomUniform",
    .inputs = {0, 0},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer_random,
    .run = run_random,
    .gradient = no_gradient,
};

}  // namespace plimsoll
