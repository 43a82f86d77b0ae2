#include <cmath>

#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

// fmod = 1: the sign of the dividend, as in C; 0: the sign of the divisor, integers only.
struct ModAttrs : BinaryAttrs {
  bool like_c = false;
};

const void* attrs(AttrContext& c) {
  ModAttrs* a = c.make<ModAttrs>();
  a->like_c = c.integer("fmod", 0) != 0;
  return a;
}

template <typename T>
T modulo(T a, T b, bool like_c) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  const T rest = static_cast<T>(a % b);
  const bool moves = !like_c && rest != 0 && (rest < 0) != (b < 0);
  return moves ? static_cast<T>(rest + b) : rest;
}

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes);
  const bool like_c = c.attrs<ModAttrs>().like_c;
  if (is_float(c.type(0)) && !like_c)
    c.reject("attribute 'fmod': expected 1 for type {}, found 0", element_type_name(c.type(0)));
  propagate(c, [=](Dim a, Dim b) -> std::optional<Dim> {
    if (!b.is_constant() || b.value() == 0) return std::nullopt;
    if (a.is_constant()) return Dim(modulo(a.value(), b.value(), like_c));
    if (b.value() < 0) return std::nullopt;
    return a - floor_div(a, b) * b;
  });
}

void run(const RunContext& c) {
  const bool like_c = c.attrs<ModAttrs>().like_c;
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) expect_divisors<T>(c);
    run_binary<T, T>(c, [=](auto a, auto b) {
      if constexpr (std::is_integral_v<T>)
        return modulo<T>(a, b, like_c);
      else
        return std::fmod(a, b);
    });
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  if (c.wants(0)) c.set_broadcast(0, c.gradient());
  if (c.wants(1)) c.set_broadcast(1, (-(dy(c) * ((in(c)-out(c)) / in(c, 1)).unary("Round"))).edge());
}

}  // namespace

extern const OpDef op_mod = {
    .name = "Mod",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
