#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  expect_sequence(c, 0);
  if (c.has_input(1)) expect_position(c, 1);
  const std::optional<Dim> length = c.input(0).length;
  if (length && *length == Dim(0)) c.reject("expected a sequence with elements, found an empty one");
  c.set_output_type(0, c.input(0).type, length ? std::optional(*length - Dim(1)) : std::nullopt);
}

void lower(LowerContext& c) {
  const KnownElements elements = c.elements(0);
  const std::optional<Dim> length = c.input(0).length;
  if (elements == nullptr || !length || !length->is_constant()) return;
  const auto count = static_cast<size_t>(length->value());
  const auto position = c.has_input(1) ? known_position(c, 1, count, false) : count - 1;
  if (!position) return;
  c.consists_of(0, [elements, at = *position] {
    std::vector<Edge*> list = elements();
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    return list;
  });
}

void run_values(ValueRun& run) {
  const TensorView before = sequence_at(run, 0);
  const size_t count = before.items().size();
  if (count == 0)
    fail(ErrorCode::kInvalidArgument, "{}: expected a sequence with elements, found an empty one",
         run.node().label());
  const size_t at = run.input(1) ? position_in(run, 1, count, false) : count - 1;
  const TensorView after =
      run.allocate_list(ValueKind::kSequence, before.type, static_cast<int64_t>(count) - 1);
  for (size_t i = 0; i + 1 < count; ++i) after.items()[i] = run.share(before.items()[i < at ? i : i + 1]);
  run.give_output(0, after);
}

}  // namespace

extern const OpDef op_sequence_erase = {
    .name = "SequenceErase",
    .inputs = {1, 2},
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
