#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kCelu, c.real("alpha", 1.0f)};
  if (f->a == 0) c.reject("attribute 'alpha': expected another number than 0, found 0");
  return f;
}

}  // namespace

extern const OpDef op_celu = float_unary("Celu", attrs);

}  // namespace plimsoll
