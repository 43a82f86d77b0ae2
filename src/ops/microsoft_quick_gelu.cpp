// x * sigmoid(alpha * x)
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

struct QuickGeluAttrs {
  float alpha = 1.702f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<QuickGeluAttrs>();
  a->alpha = c.real("alpha", 1.702f);
  return a;
}

void decompose(DecomposeContext& c) {
  const float alpha = c.attrs<QuickGeluAttrs>().alpha;
  Edge* x = c.in(0);
  Edge* scaled = alpha == 1 ? x : c.op("Mul", {x, c.scalar(c.type(0), alpha)});
  c.op_into(0, "Mul", {x, c.op("Sigmoid", {scaled})});
}

}  // namespace

extern const OpDef op_microsoft_quick_gelu = {.domain = kMicrosoftDomain,
                                              .name = "QuickGelu",
                                              .attrs = attrs,
                                              .infer = infer_float_unary,
                                              .decompose = decompose};

}  // namespace plimsoll
