// RMSNormalization of every group of as many elements as `scale` has, times SiLU of a gate, in f32.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kScale = 1, kGate = 2;

struct GatedAttrs {
  float epsilon = 1e-5f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<GatedAttrs>();
  a->epsilon = c.real("epsilon", 1e-5f);
  return a;
}

void infer(InferContext& c) {
  infer_like_first(c, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16),
                   {kScale, kGate});
  c.expect_rank(kScale, 1, 1);
  if (!c.ranked(kX)) return;
  if (c.rank(kX) == 0) c.reject("input 0: expected a last dimension, found a scalar");
  if (c.ranked(kGate)) {
    c.expect_rank(kGate, c.rank(kX), c.rank(kX));
    for (size_t d = 0; d < c.rank(kX); ++d) unify(c, c.dims(kX)[d], c.dims(kGate)[d]);
  }
  if (!c.ranked(kScale)) return;
  const Dim width = c.dims(kX).back(), group = c.dims(kScale)[0];
  if (width.is_constant() && group.is_constant() &&
      (group.value() == 0 || width.value() % group.value() != 0))
    c.reject("{} elements cannot be divided into groups of {}", width.value(), group.value());
}

void decompose(DecomposeContext& c) {
  const auto as_float = [&](size_t i) {
    return c.type(kX) == ElementType::kFloat ? c.in(i)
                                             : c.op("Cast", {c.in(i)}, c.attributes().set("to", int64_t{1}));
  };
  Edge* groups = c.op("Concat", {c.build.integers({-1}), c.op("Shape", {c.in(kScale)})},
                      c.attributes().set("axis", int64_t{0}));
  Edge* normal = c.op("RMSNormalization", {c.op("Reshape", {as_float(kX), groups}), as_float(kScale)},
                      c.attributes().set("axis", int64_t{-1}).set("epsilon", c.attrs<GatedAttrs>().epsilon));
  Edge* gate = as_float(kGate);
  Edge* open = c.op("Mul", {gate, c.op("Sigmoid", {gate})});
  Edge* whole =
      c.op("Reshape", {normal, c.op("Shape", {c.in(kX)})}, c.attributes().set("allowzero", int64_t{1}));
  if (c.type(kX) == ElementType::kFloat) {
    c.op_into(0, "Mul", {whole, open});
  } else {
    c.op_into(0, "Cast", {c.op("Mul", {whole, open})},
              c.attributes().set("to", static_cast<int64_t>(c.type(kX))));
  }
}

}  // namespace

extern const OpDef op_microsoft_gated_rms_norm = {.domain = kMicrosoftDomain,
                                                  .name = "GatedRMSNorm",
                                                  .inputs = {3, 3},
                                                  .attrs = attrs,
                                                  .infer = infer,
                                                  .decompose = decompose};

}  // namespace plimsoll
