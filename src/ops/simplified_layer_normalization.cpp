// RMSNormalization before ONNX had it; exporters write it in ONNX's own domain.
#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/skip_normalization.h"

namespace plimsoll {
namespace {

struct SimplifiedAttrs {
  int64_t axis = -1;
  float epsilon = 1e-5f;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<SimplifiedAttrs>();
  a->axis = c.integer("axis", -1);
  a->epsilon = c.real("epsilon", 1e-5f);
  read_stash_type(c);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_type(1, kFloatTypes);
  set_output_like(c, 0, c.type(1), 0);
  if (!c.ranked(0)) return c.set_unranked_output(1, ElementType::kFloat);
  const auto axis = static_cast<size_t>(c.axis(c.attrs<SimplifiedAttrs>().axis, c.rank(0)));
  if (c.ranked(1)) {
    const Dim count = product(c.dims(1)), cols = product(c.dims(0).subspan(axis));
    if (count.is_constant() && cols.is_constant() && !(count == cols))
      c.reject("scale: expected {} elements, found shape {}", cols.value(), to_string(c.dims(1)));
  }
  std::vector<Dim> moments(c.dims(0).begin(), c.dims(0).end());
  for (size_t i = axis; i < moments.size(); ++i) moments[i] = 1;
  c.set_output(1, ElementType::kFloat, moments);
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<SimplifiedAttrs>();
  write_rms(c, c.in(0), c.in(1), a.axis, a.epsilon, 1, c.ranked(0) ? c.rank(0) : 0);
}

}  // namespace

extern const OpDef op_simplified_layer_normalization = {.name = "SimplifiedLayerNormalization",
                                                        .inputs = {2, 2},
                                                        .outputs = {1, 2},
                                                        .attrs = attrs,
                                                        .infer = infer,
                                                        .decompose = decompose};

}  // namespace plimsoll
