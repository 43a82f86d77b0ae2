#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kThresholdedRelu, c.real("alpha", 1.0f)};
  return f;
}

void gradient(GradientContext& c) {
  c.set(0, (only_where(in(c) > c.attrs<kernels::Unary>().a, dy(c))).edge());
}

}  // namespace

extern const OpDef op_thresholded_relu = float_unary("ThresholdedRelu", attrs, gradient);

}  // namespace plimsoll
