#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  const TypeInfo& element = expect_sequence(c, 0);
  expect_position(c, 1);
  c.set_output_type(0, one_of(c, element));
}

void lower(LowerContext& c) {
  const KnownElements elements = c.elements(0);
  if (elements == nullptr || !c.integers(1)) return;
  const std::vector<Edge*> list = elements();
  if (const auto position = known_position(c, 1, list.size(), false)) c.replace(0, list[*position]);
}

void run_values(ValueRun& run) {
  const TensorView sequence = sequence_at(run, 0);
  run.set_output(0, sequence.items()[position_in(run, 1, sequence.items().size(), false)]);
}

}  // namespace

extern const OpDef op_sequence_at = {
    .name = "SequenceAt",
    .inputs = {2, 2},
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
