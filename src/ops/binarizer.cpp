#include "ops/elementwise.h"
#include "ops/feature_rows.h"

namespace plimsoll {
namespace {

struct BinarizerAttrs {
  float threshold = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<BinarizerAttrs>();
  a->threshold = c.real("threshold", 0);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kFeatureTypes);
  set_output_like(c, 0, c.type(0), 0);
}

void run(const RunContext& c) {
  const float threshold = c.attrs<BinarizerAttrs>().threshold;
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_elements<T, T>(c, [&](auto x) {
      return static_cast<ComputeType<T>>(static_cast<double>(x) > static_cast<double>(threshold) ? 1 : 0);
    });
  });
}

}  // namespace

extern const OpDef op_binarizer = {
    .domain = kMlDomain,
    .name = "Binarizer",
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
};

}  // namespace plimsoll
