#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  const TypeInfo& before = expect_sequence(c, 0);
  c.expect_type(1, kViewTypes);
  if (c.has_input(2)) expect_position(c, 2);
  const std::optional<Dim> length = c.input(0).length;
  const auto common = common_type(c, before, c.input(1).type);
  if (!common || common->kind != ValueKind::kTensor)
    c.reject("input 1 ('{}'): expected {}, as in the sequence, found {}", c.node().inputs[1]->name,
             to_string(before), to_string(c.input(1).type));
  const bool is_first = length && *length == Dim(0);
  c.set_output_type(0, list_of(c, ValueKind::kSequence, is_first ? c.input(1).type : *common),
                    length ? std::optional(*length + Dim(1)) : std::nullopt);
}

void lower(LowerContext& c) {
  const KnownElements elements = c.elements(0);
  const std::optional<Dim> length = c.input(0).length;
  if (elements == nullptr || !length || !length->is_constant()) return;
  const auto count = static_cast<size_t>(length->value());
  const auto position = c.has_input(2) ? known_position(c, 2, count, true) : count;
  if (!position) return;
  c.consists_of(0, [elements, at = *position, inserted = c.node().inputs[1]] {
    std::vector<Edge*> list = elements();
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), inserted);
    return list;
  });
}

void run_values(ValueRun& run) {
  const TensorView before = sequence_at(run, 0);
  const size_t count = before.items().size();
  const size_t at = run.input(2) ? position_in(run, 2, count, true) : count;
  const TensorView after =
      run.allocate_list(ValueKind::kSequence, before.type, static_cast<int64_t>(count) + 1);
  for (size_t i = 0; i < count; ++i) after.items()[i < at ? i : i + 1] = run.share(before.items()[i]);
  after.items()[at] = run.share(run.input(1));
  run.give_output(0, after);
}

}  // namespace

extern const OpDef op_sequence_insert = {
    .name = "SequenceInsert",
    .inputs = {2, 3},
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
