#include "ops/control_flow.h"

#include "graph/op_def.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<LoopAttrs>();
  a->body = c.body("body");
  const Node& node = c.node();
  const size_t carried = node.inputs.size() - 2;
  if (a->body->inputs.size() != carried + 2)
    c.reject("expected {} inputs of the body, found {}", carried + 2, a->body->inputs.size());
  if (a->body->outputs.size() != node.outputs.size() + 1 || node.outputs.size() < carried)
    c.reject("expected {} outputs of the body, found {}", node.outputs.size() + 1, a->body->outputs.size());
  return a;
}

Facts scalar(InferContext& c, ElementType type) {
  Facts facts;
  facts.type = {ValueKind::kTensor, type, ElementType::kUndefined, true, c.arena().array<Dim>(0), nullptr};
  return facts;
}

// Forgets what an iteration may change. True if it had to.
bool generalize(InferContext& c, Facts& before, const Facts& after) {
  if (before.type.type != after.type.type)
    c.reject("a carried value changes from {} to {}", to_string(before.type), to_string(after.type));
  if (!before.type.ranked) return false;
  if (!after.type.ranked || after.type.rank() != before.type.rank()) {
    before.type.ranked = false;
    before.type.dims = {};
    return true;
  }
  bool changed = false;
  std::vector<Dim> dims(before.type.dims.begin(), before.type.dims.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == after.type.dims[i] || dims[i].depends_on_data()) continue;
    dims[i] = c.unknown("");
    changed = true;
  }
  before.type.dims = c.arena().copy(dims);
  return changed;
}

// The number of iterations, where M alone decides it: the body's condition is a constant true.
Dim trip_count(InferContext& c, const Facts& body_condition) {
  const auto most = c.has_input(0) ? c.values(0) : std::nullopt;
  auto is_true = [](const TensorView* view) {
    return view != nullptr && view->elements() == 1 && *view->as<bool>();
  };
  const bool starts = !c.has_input(1) || is_true(c.constant(1));
  const bool goes_on = is_true(body_condition.constant);
  if (!most || most->size() != 1 || !starts || !goes_on) return c.unknown("");
  const Dim count = (*most)[0];
  return count.is_constant() && count.value() < 0 ? Dim(0) : count;
}

void infer(InferContext& c) {
  if (c.has_input(0)) c.expect_type(0, types(ElementType::kInt64));
  if (c.has_input(1)) c.expect_type(1, kBoolType);
  const Graph& body = *c.attrs<LoopAttrs>().body;
  const size_t carried = c.input_count() - 2;
  std::vector<Facts> inputs = {scalar(c, ElementType::kInt64), scalar(c, ElementType::kBool)};
  for (size_t i = 0; i < carried; ++i) {
    c.expect_type(i + 2, kAllTypes);
    Facts facts = c.input(i + 2);
    facts.values.reset();
    facts.constant = nullptr;
    inputs.push_back(facts);
  }
  // Every round forgets at least one dimension or rank, so that this ends.
  std::vector<Facts> outputs;
  for (bool changed = true; changed;) {
    outputs = c.bodies->infer(body, inputs);
    changed = false;
    for (size_t i = 0; i < carried; ++i) changed |= generalize(c, inputs[i + 2], outputs[i + 1]);
  }
  for (size_t i = 0; i < carried; ++i) c.set_output_facts(i, inputs[i + 2]);
  const Dim count = trip_count(c, outputs[0]);
  for (size_t i = carried; i < c.output_count(); ++i) {
    const TypeInfo& element = outputs[i + 1].type;
    if (!element.ranked) {
      c.set_unranked_output(i, element.type);
      continue;
    }
    std::vector<Dim> dims = {count};
    dims.insert(dims.end(), element.dims.begin(), element.dims.end());
    c.set_output(i, element.type, dims);
  }
}

}  // namespace

extern const OpDef op_loop = {
    .name = "Loop",
    .inputs = {2, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .control_flow = true,
    .optional_inputs = 0b11,
};

}  // namespace plimsoll
