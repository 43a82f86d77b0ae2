#include "graph/gradient.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes | kBoolType | types(ElementType::kString), ElementType::kBool);
  propagate(c, [](Dim a, Dim b) {
    const int equal = known_equal(a, b);
    return equal < 0 ? std::nullopt : std::optional<Dim>(equal);
  });
}

void run(const RunContext& c) {
  const auto equal = [](auto a, auto b) { return a == b; };
  if (c.inputs[0].type == ElementType::kString) return run_binary<StringRef, uint8_t>(c, equal);
  if (c.inputs[0].type == ElementType::kBool)  // any byte but 0 is true
    return run_binary<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a != 0) == (b != 0); });
  run_comparison(c, equal);
}

}  // namespace

extern const OpDef op_equal = {
    .name = "Equal",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = no_gradient,
};

}  // namespace plimsoll
