#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kThresholdedRelu, c.real("alpha", 1.0f)};
  return f;
}

}  // namespace

extern const OpDef op_thresholded_relu = float_unary("ThresholdedRelu", attrs);

}  // namespace plimsoll
