#include "graph/gradient.h"
#include "ops/random_source.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return random_attrs(c, Distribution::kNormal, false);
}

}  // namespace

extern const OpDef op_random_normal_like = {
    .name = "RandomNormalLike",
    .deterministic = false,
    .attrs = attrs,
    .infer = infer_random_like,
    .run = run_random,
    .gradient = no_gradient,
};

}  // namespace plimsoll
