// A gradient added to its sum, or in its place where the flag says so: what the graphs of ONNX Runtime's
// training end in. The sum is output 1; whoever wants it in the place of input 0 binds both to the same
// memory.
#include "ops/microsoft_decomposed.h"
#include "ops/update_common.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kUpdateTypes);
  c.expect_same_type(0, 1);
  if (c.has_input(2)) c.expect_type(2, types(ElementType::kBool));
  const Dim one[] = {1};
  c.set_output(0, ElementType::kBool, one);
  if (c.output_count() > 1) set_output_like(c, 1, c.type(0), 0);
}

void decompose(DecomposeContext& c) {
  const std::byte yes{1}, no{0};
  const int64_t one[] = {1};
  Edge* reset = c.in(2);
  if (reset == nullptr) reset = c.build.constant("keep", ElementType::kBool, one, std::span(&no, 1));
  Edge* flag = c.build.constant("updated", ElementType::kBool, one, std::span(&yes, 1));
  if (c.out(0) != nullptr) c.op_into(0, "Identity", {flag});
  if (c.out(1) == nullptr) return;
  Edge* const inputs[] = {c.in(0), c.in(1), reset};
  Edge* const outputs[] = {c.out(1)};
  c.build.emit_into(outputs, kPlimsollDomain, "AccumulateGradient", inputs, {});
}

}  // namespace

extern const OpDef op_microsoft_in_place_accumulator_v2 = {
    .domain = kMicrosoftDomain,
    .name = "InPlaceAccumulatorV2",
    .inputs = {2, 3},
    .outputs = {1, 2},
    .infer = infer,
    .decompose = decompose,
};

}  // namespace plimsoll
