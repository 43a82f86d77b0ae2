#include "ops/elementwise.h"
#include "ops/unary_gradient.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  kernels::Unary* f = c.make<kernels::Unary>();
  const std::string_view approximate = c.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    c.reject("attribute 'approximate': expected none or tanh, found {}", approximate);
  f->kind = approximate == "tanh" ? kernels::UnaryKind::kGeluTanh : kernels::UnaryKind::kGelu;
  return f;
}

void gradient(GradientContext& c) {
  set_unary_gradient(c, c.attrs<kernels::Unary>());
}

}  // namespace

extern const OpDef op_gelu = float_unary("Gelu", attrs, gradient);

}  // namespace plimsoll
