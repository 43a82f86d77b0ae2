#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kHardSigmoid, c.real("alpha", 0.2f), c.real("beta", 0.5f)};
  return f;
}

}  // namespace

extern const OpDef op_hard_sigmoid = float_unary("HardSigmoid", attrs);

}  // namespace plimsoll
