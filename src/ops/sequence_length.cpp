#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  expect_sequence(c, 0);
  c.set_output(0, ElementType::kInt64, std::vector<Dim>{});
  if (c.input(0).length) c.set_values(0, std::vector<Dim>{*c.input(0).length});
}

void lower(LowerContext& c) {
  const std::optional<Dim> length = c.input(0).length;
  if (length && length->is_constant()) c.replace(0, c.builder().scalar(length->value()));
}

void run_values(ValueRun& run) {
  const auto length = static_cast<int64_t>(sequence_at(run, 0).items().size());
  *run.make_output(0, ElementType::kInt64, {}).as<int64_t>() = length;
}

}  // namespace

extern const OpDef op_sequence_length = {
    .name = "SequenceLength",
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
