#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  TypeInfo element;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, kViewTypes);
    c.expect_same_type(0, i);
    element = i == 0 ? c.input(0).type : *common_type(c, element, c.input(i).type);
  }
  c.set_output_type(0, list_of(c, ValueKind::kSequence, element), Dim(static_cast<int64_t>(c.input_count())));
}

void lower(LowerContext& c) {
  c.consists_of(0, [inputs = c.node().inputs] { return std::vector<Edge*>(inputs.begin(), inputs.end()); });
}

void run_values(ValueRun& run) {
  const size_t count = run.node().inputs.size();
  const TensorView list =
      run.allocate_list(ValueKind::kSequence, run.input(0).type, static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) list.items()[i] = run.share(run.input(i));
  run.give_output(0, list);
}

}  // namespace

extern const OpDef op_sequence_construct = {
    .name = "SequenceConstruct",
    .inputs = {1, kAnyNumber},
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
