#include "ops/microsoft_decomposed.h"
#include "ops/skip_normalization.h"

namespace plimsoll {
namespace {

constexpr SkipInputs kInputs{3, 4};

void infer(InferContext& c) {
  infer_skip(c, kInputs);
}

void decompose(DecomposeContext& c) {
  Edge* const inputs[] = {write_skip_sum(c, kInputs), c.in(2), c.in(kInputs.beta)};
  Edge* const outputs[] = {c.out(0), c.out(1), c.out(2)};
  c.build.emit_into(outputs, "", "LayerNormalization", inputs,
                    c.attributes().set("epsilon", c.attrs<SkipAttrs>().epsilon).list());
}

}  // namespace

extern const OpDef op_microsoft_skip_layer_normalization = {.domain = kMicrosoftDomain,
                                                            .name = "SkipLayerNormalization",
                                                            .inputs = {3, 5},
                                                            .outputs = {1, 4},
                                                            .attrs = skip_attrs,
                                                            .infer = infer,
                                                            .decompose = decompose};

}  // namespace plimsoll
