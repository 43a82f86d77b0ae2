#include "ops/sequences.h"

namespace plimsoll {
namespace {

constexpr size_t kBody = 0;

struct Attrs {
  Graph* body = nullptr;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->body = c.body("body");
  const Node& node = c.node();
  if (a->body->inputs.size() != node.inputs.size())
    c.reject("expected {} inputs of the body, found {}", node.inputs.size(), a->body->inputs.size());
  if (a->body->outputs.size() != node.outputs.size())
    c.reject("expected {} outputs of the body, found {}", node.outputs.size(), a->body->outputs.size());
  return a;
}

// The body runs once for each element of input 0. Of the other inputs, sequences give an element each time,
// tensors themselves.
void infer(InferContext& c) {
  std::vector<Facts> inputs;
  const std::optional<Dim> length = c.input(0).length;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    Facts facts;
    if (i == 0 || c.input(i).type.kind == ValueKind::kSequence) {
      facts.type = one_of(c, expect_sequence(c, i));
    } else {
      c.expect_type(i, kAllTypes);
      facts = c.input(i);
    }
    const std::optional<Dim> other = c.input(i).length;
    if (length && other && length->is_constant() && other->is_constant() && !(*length == *other))
      c.reject("inputs 0 and {}: expected sequences of one length, found {} and {}", i, length->value(),
               other->value());
    inputs.push_back(facts);
  }
  const std::vector<Facts> outputs = c.bodies->infer(*c.attrs<Attrs>().body, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].type.kind != ValueKind::kTensor)
      c.reject("output {} of the body: expected a tensor, found {}", i, to_string(outputs[i].type));
    c.set_output_type(i, list_of(c, ValueKind::kSequence, outputs[i].type), length);
  }
}

void run(BodyRun& run) {
  const size_t count = sequence_at(run, 0).items().size();
  const std::span<TensorView> given = run.given(kBody);
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorView input = run.input(i);
    if (input.kind == ValueKind::kSequence && input.items().size() != count)
      fail(ErrorCode::kInvalidArgument,
           "{}: inputs 0 and {}: expected sequences of one length, found {} and {}", run.node().label(), i,
           count, input.items().size());
  }
  const size_t outputs = run.node().outputs.size();
  std::vector<TensorView> lists;
  for (size_t o = 0; o < outputs; ++o) {
    TensorView element;
    run.knows_output(kBody, o, element);
    lists.push_back(run.allocate_list(ValueKind::kSequence, element.type, static_cast<int64_t>(count)));
  }
  for (size_t n = 0; n < count; ++n) {
    run.check_stop();
    for (size_t i = 0; i < given.size(); ++i) {
      const TensorView input = run.input(i);
      given[i] = input.kind == ValueKind::kSequence ? input.items()[n] : input;
    }
    run.run(kBody, given);
    for (size_t o = 0; o < outputs; ++o) {
      if (run.has_output(o)) lists[o].items()[n] = run.share(run.body_output(kBody, o));
    }
  }
  for (size_t o = 0; o < outputs; ++o) run.give_output(o, lists[o]);
}

constexpr ControlFlow kControlFlow = {.run = run};

}  // namespace

extern const OpDef op_sequence_map = {
    .name = "SequenceMap",
    .inputs = {1, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .control_flow = &kControlFlow,
};

}  // namespace plimsoll
