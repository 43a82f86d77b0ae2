#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kSwish, c.real("alpha", 1.0f)};
  return f;
}

}  // namespace

extern const OpDef op_swish = float_unary("Swish", attrs);

}  // namespace plimsoll
