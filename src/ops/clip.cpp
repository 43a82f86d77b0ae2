#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

// Before opset 11 the bounds are attributes, then scalar inputs, both optional.
struct ClipAttrs {
  float low = std::numeric_limits<float>::lowest();
  float high = std::numeric_limits<float>::max();
  bool has_low = false, has_high = false;
};

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  ClipAttrs* a = c.make<ClipAttrs>();
  if (c.opset() >= 11) return a;
  a->has_low = c.has("min");
  a->has_high = c.has("max");
  a->low = c.real("min", a->low);
  a->high = c.real("max", a->high);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  for (size_t i = 1; i < 3; ++i) {
    if (!c.has_input(i)) continue;
    c.expect_same_type(0, i);
    if (c.ranked(i) && product(c.dims(i)).is_constant() && product(c.dims(i)).value() != 1)
      c.reject("input {}: expected a scalar, found shape {}", i, to_string(c.dims(i)));
  }
  set_output_like(c, 0, c.type(0), 0);
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

// Without a bound the value passes, infinities included.
template <typename T>
void clip(const RunContext& c) {
  using Number = ComputeType<T>;
  const ClipAttrs& a = c.attrs<ClipAttrs>();
  const bool has_low = a.has_low || c.has_input(1);
  const bool has_high = a.has_high || c.has_input(2);
  Number low = std::numeric_limits<Number>::lowest();
  Number high = std::numeric_limits<Number>::max();
  if constexpr (std::numeric_limits<Number>::has_infinity) {
    high = std::numeric_limits<Number>::infinity();
    low = -high;
    if (has_low) low = static_cast<Number>(a.low);
    if (has_high) high = static_cast<Number>(a.high);
  }
  if (c.has_input(1)) low = load_element(*c.inputs[1].as<T>());
  if (c.has_input(2)) high = load_element(*c.inputs[2].as<T>());
  if constexpr (std::is_same_v<Number, float>) {
    run_unary(c, {kernels::UnaryKind::kClip, low, high});
  } else {
    map_elements<T, T>(c, [low, high](Number x) {
      const Number raised = x < low ? low : x;
      return raised > high ? high : raised;
    });
  }
}

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) { clip<typename decltype(tag)::type>(c); });
}

void gradient(GradientContext& c) {
  const ClipAttrs& a = c.attrs<ClipAttrs>();
  const Term x = in(c);
  const auto bound = [&](size_t i, bool has, float value) {
    if (c.has_input(i)) return std::optional<Term>(in(c, i));
    return has ? std::optional<Term>(x.number(double{value})) : std::nullopt;
  };
  const auto low = bound(1, a.has_low, a.low), high = bound(2, a.has_high, a.high);
  // What meets a bound is passed on, as in PyTorch.
  Term dx = dy(c);
  if (low) dx = (x < *low).choose(x.number(0), dx);
  if (high) dx = (x > *high).choose(x.number(0), dx);
  c.set(0, dx.edge());
  if (c.wants(1)) c.set_broadcast(1, only_where(x < *low, dy(c)).edge());
  if (c.wants(2)) c.set_broadcast(2, only_where(x > *high, dy(c)).edge());
}

}  // namespace

extern const OpDef op_clip = {
    .name = "Clip",
    .inputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
