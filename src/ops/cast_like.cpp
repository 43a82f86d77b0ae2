#include "graph/gradient.h"
#include "ops/cast_elements.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  CastAttrs* a = c.make<CastAttrs>();
  read_cast_rules(c, *a);
  return a;
}

void infer(InferContext& c) {
  infer_cast(c, c.type(1));
}

void gradient(GradientContext& c) {
  c.set(0, c.op("Cast", {c.gradient()}, c.attributes().set("to", static_cast<int64_t>(c.type(0)))));
}

}  // namespace

extern const OpDef op_cast_like = {
    .name = "CastLike",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run_cast,
    .cost = cost_elementwise,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
