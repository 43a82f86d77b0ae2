#include <cstring>

#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

// Since opset 18 the input may be what an optional holds, and is then the output.
void infer(InferContext& c) {
  const Facts& input = c.input(0);
  if (input.type.kind != ValueKind::kOptional) {
    if (c.opset() < 18) c.reject("expected an optional, found {}", to_string(input.type));
    return c.set_output_facts(0, input);
  }
  c.set_output_type(0, one_of(c, *input.type.element));
}

void lower(LowerContext& c) {
  if (c.input(0).type.kind != ValueKind::kOptional) return c.replace(0, c.node().inputs[0]);
  const KnownElements elements = c.elements(0);
  const std::optional<Dim> length = c.input(0).length;
  if (elements == nullptr || !length || !(*length == Dim(1))) return;
  c.replace(0, elements()[0]);
}

void run_values(ValueRun& run) {
  const TensorView input = run.input(0);
  if (input.is_none())
    fail(ErrorCode::kInvalidArgument, "{}: expected an optional with a value, found one without",
         run.node().label());
  run.set_output(0, input);
}

}  // namespace

extern const OpDef op_optional_get_element = {
    .name = "OptionalGetElement",
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
