#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

// Truncates toward zero; symbolic sizes are taken as not negative, where floor does the same.
std::optional<Dim> divide(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    if (b.value() == 0 || b.value() == -1) return b.value() == 0 ? std::optional<Dim>() : Dim(0) - a;
    return Dim(a.value() / b.value());
  }
  if (!known_at_least(b, 1)) return std::nullopt;
  return floor_div(a, b);
}

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
  propagate(c, divide);
}

// The smallest number divided by -1 wraps.
template <typename T>
T divide_integers(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(WrapType<T>{0} - static_cast<WrapType<T>>(a));
  }
  return static_cast<T>(a / b);
}

void run(const RunContext& c) {
  if (is_float(c.inputs[0].type)) return run_float_binary(c, kernels::BinaryKind::kDiv);
  visit_integer(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    expect_divisors<T>(c);
    run_binary<T, T>(c, [](auto a, auto b) { return divide_integers<T>(a, b); });
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  if (c.wants(0)) c.set_broadcast(0, (dy(c) / in(c, 1)).edge());
  if (c.wants(1)) c.set_broadcast(1, (-(dy(c) * out(c) / in(c, 1))).edge());
}

}  // namespace

extern const OpDef op_div = {
    .name = "Div",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
