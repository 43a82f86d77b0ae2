#include "ops/elementwise.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {kernels::UnaryKind::kLeakyRelu, c.real("alpha", 0.01f)};
  return f;
}

}  // namespace

extern const OpDef op_leaky_relu = float_unary("LeakyRelu", attrs);

}  // namespace plimsoll
