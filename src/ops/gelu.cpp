#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

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
  const Term x = in(c);
  if (c.attrs<kernels::Unary>().kind == kernels::UnaryKind::kGelu) {
    constexpr double kRoot = 0.7071067811865476,
                     kDensity = 0.3989422804014327;  // 1 / sqrt(2), 1 / sqrt(2 pi)
    const Term cumulative = ((x * kRoot).unary("Erf") + 1.0) * 0.5;
    const Term density = (x * x * -0.5).unary("Exp") * kDensity;
    return c.set(0, (dy(c) * (cumulative + x * density)).edge());
  }
  constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;  // sqrt(2 / pi)
  const Term square = x * x;
  const Term t = (x * (1.0 + square * kCubic) * kScale).unary("Tanh");
  const Term slope = (1.0 - t * t) * (1.0 + square * (3 * kCubic)) * (x * kScale);
  c.set(0, (dy(c) * ((1.0 + t + slope) * 0.5)).edge());
}

}  // namespace

extern const OpDef op_gelu = float_unary("Gelu", attrs, gradient);

}  // namespace plimsoll
