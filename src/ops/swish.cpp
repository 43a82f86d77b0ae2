#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kSwish, c.real("alpha", 1.0f)};
  return f;
}

void gradient(GradientContext& c) {
  set_unary_gradient(c, c.attrs<kernels::Unary>());
}

}  // namespace

extern const OpDef op_swish = float_unary("Swish", attrs, gradient);

}  // namespace plimsoll
