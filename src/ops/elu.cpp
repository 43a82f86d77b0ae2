#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kElu, c.real("alpha", 1.0f)};
  return f;
}

}  // namespace

extern const OpDef op_elu = float_unary("Elu", attrs);

}  // namespace plimsoll
