// UnaryGradient(V, dY): dY times the slope of `function` at V, in one pass. V is the function's input, of
// Sigmoid and Tanh its output.
#include "ops/unary_gradient.h"

#include <algorithm>
#include <iterator>

#include "kernels/parallel.h"
#include "kernels/unary_gradient.h"
#include "ops/elementwise.h"
#include "ops/gradient_terms.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

using kernels::UnaryKind;

struct Function {
  std::string_view name;
  UnaryKind kind;
};
constexpr Function kFunctions[] = {
    {"Erf", UnaryKind::kErf},           {"Gelu", UnaryKind::kGelu},
    {"GeluTanh", UnaryKind::kGeluTanh}, {"HardSwish", UnaryKind::kHardSwish},
    {"Swish", UnaryKind::kSwish},       {"Sigmoid", UnaryKind::kSigmoid},
    {"Tanh", UnaryKind::kTanh},
};

const void* attrs(AttrContext& c) {
  const std::string_view name = c.text("function", "");
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const Function& f) { return f.name == name; });
  if (found == std::end(kFunctions))
    c.reject(
        "attribute 'function': expected Erf, Gelu, GeluTanh, HardSwish, Swish, Sigmoid or Tanh, found {}",
        name);
  kernels::Unary* f = c.make<kernels::Unary>();
  *f = {found->kind, c.real("alpha", 1.0f)};
  return f;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  expect_same_dims(c, 0, 1);
  set_output_like(c, 0, c.type(0), 1);
}

void alias(AliasContext& c) {
  c.overwrite(1);
  c.overwrite(0);
}

void run(const RunContext& c) {
  constexpr int64_t kChunk = 16384;
  const int64_t count = c.outputs[0].elements();
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *v = c.inputs[0].as<T>(), *dy = c.inputs[1].as<T>();
    T* dx = c.outputs[0].as<T>();
    kernels::parallel_for(count > 2 * kChunk ? c.threads : 1, ceil_div(count, kChunk), [&](int64_t chunk) {
      const int64_t at = chunk * kChunk;
      kernels::unary_gradient(c.attrs<kernels::Unary>(), v + at, dy + at, dx + at,
                              std::min(kChunk, count - at));
    });
  });
}

void layout(LayoutContext& c) {
  c.either({0, 1});
}

// What the slope changes by where V does.
Term slope_change(const Term& v, const kernels::Unary& f) {
  switch (f.kind) {
    case UnaryKind::kErf: {
      constexpr double kScale = -2.2567583341910251;  // -4 / sqrt(pi)
      return v * (-(v * v)).unary("Exp") * kScale;
    }
    case UnaryKind::kGelu: {
      constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2 pi)
      const Term square = v * v;
      return (square * -0.5).unary("Exp") * (2.0 - square) * kDensity;
    }
    case UnaryKind::kGeluTanh: {
      constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;  // sqrt(2 / pi)
      const Term square = v * v;
      const Term t = (v * (1.0 + square * kCubic) * kScale).unary("Tanh");
      const Term inner = (1.0 + square * (3 * kCubic)) * kScale;
      const Term bend = v * v * (3 * kScale * kCubic) - v * t * inner * inner;
      return (1.0 - t * t) * (inner + bend);
    }
    case UnaryKind::kHardSwish:
      return only_where(v > -3.0 && v < 3.0, v * 0.0 + 1.0 / 3);
    case UnaryKind::kSwish: {
      const Term scaled = v * double{f.a}, s = scaled.unary("Sigmoid"), rest = 1.0 - s;
      return s * rest * (2.0 + scaled * (rest - s)) * double{f.a};
    }
    case UnaryKind::kSigmoid:
      return 1.0 - v * 2.0;
    default:  // kTanh
      return v * -2.0;
  }
}

AttributeList attributes_of(const GradientContext& c, const kernels::Unary& f) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const Function& one) { return one.kind == f.kind; });
  AttributeList list = c.attributes().set("function", found->name);
  if (f.kind == UnaryKind::kSwish) list.set("alpha", f.a);
  return list;
}

void gradient(GradientContext& c) {
  const auto& f = c.attrs<kernels::Unary>();
  if (c.wants(0)) c.set(0, (dy(c) * in(c, 1) * slope_change(in(c), f)).edge());
  if (c.wants(1)) c.set(1, c.own_op("UnaryGradient", {c.in(0), c.gradient()}, attributes_of(c, f)));
}

}  // namespace

void set_unary_gradient(GradientContext& c, const kernels::Unary& f) {
  const bool from_output = f.kind == UnaryKind::kSigmoid || f.kind == UnaryKind::kTanh;
  c.set(0, c.own_op("UnaryGradient", {from_output ? c.out(0) : c.in(0), c.gradient()}, attributes_of(c, f)));
}

extern const OpDef op_unary_gradient = {
    .domain = kPlimsollDomain,
    .name = "UnaryGradient",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout,
    .gradient = gradient,
};

}  // namespace plimsoll
