#include "graph/bodies.h"
#include "graph/op_def.h"
#include "ops/body_gradient.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct IfAttrs {
  Graph* then_branch = nullptr;
  Graph* else_branch = nullptr;
  bool then_first = true;  // in the order of the attributes
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<IfAttrs>();
  a->then_branch = c.body("then_branch");
  a->else_branch = c.body("else_branch");
  a->then_first = bodies_of(c.node())[0] == a->then_branch;
  for (const Graph* body : {a->then_branch, a->else_branch}) {
    if (!body->inputs.empty()) c.reject("a branch must have no inputs, found {}", body->inputs.size());
    if (body->outputs.size() != c.node().outputs.size())
      c.reject("expected {} outputs of each branch, found {}", c.node().outputs.size(), body->outputs.size());
  }
  return a;
}

// What is true whichever branch is taken.
Facts merge(InferContext& c, size_t output, const Facts& a, const Facts& b) {
  const auto type = common_type(c, a.type, b.type);
  if (!type) c.reject("output {}: the branches give {} and {}", output, to_string(a.type), to_string(b.type));
  Facts merged;
  merged.type = *type;
  if (a.length && b.length && *a.length == *b.length) merged.length = a.length;
  return merged;
}

// A branch may be meant for other shapes than these (one per sampling rate, say). Then the other one
// decides, and taking this one is an error of the run.
std::optional<std::vector<Facts>> try_branch(InferContext& c, const Graph& branch) {
  try {
    return c.bodies->infer(branch, {});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidModel) throw;
    return std::nullopt;
  }
}

Facts without_data(Facts facts) {
  facts.values.reset();
  facts.constant = nullptr;
  return facts;
}

// The condition, where it is known.
std::optional<bool> known_condition(const InferContext& c) {
  const TensorView* condition = c.constant(0);
  if (condition != nullptr && condition->elements() == 1) return *condition->as<bool>();
  const auto& values = c.input(0).values;
  if (!values || values->size() != 1 || !(*values)[0].is_constant()) return std::nullopt;
  return (*values)[0].value() != 0;
}

void infer(InferContext& c) {
  c.expect_type(0, kBoolType);
  const auto& a = c.attrs<IfAttrs>();
  if (const auto taken = known_condition(c)) {
    const std::vector<Facts> outputs = c.bodies->infer(*taken ? *a.then_branch : *a.else_branch, {});
    for (size_t i = 0; i < outputs.size(); ++i) c.set_output_facts(i, outputs[i]);
    return;
  }
  const auto first = try_branch(c, *a.then_branch);
  const auto second = first ? try_branch(c, *a.else_branch) : c.bodies->infer(*a.else_branch, {});
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (first && second) {
      c.set_output_facts(i, merge(c, i, (*first)[i], (*second)[i]));
    } else {
      c.set_output_facts(i, without_data(first ? (*first)[i] : (*second)[i]));
    }
  }
}

void run(BodyRun& run) {
  const TensorView condition = run.input(0);
  if (condition.elements() != 1)
    fail(ErrorCode::kInvalidArgument, "{}: the condition must have one element, found shape {}",
         run.node().label(), to_string(condition.dims));
  const auto& a = *static_cast<const IfAttrs*>(run.node().attrs);
  const bool taken = *condition.as<bool>();
  const size_t body = taken == a.then_first ? 0 : 1;
  if (!run.has_body(body))
    fail(ErrorCode::kInvalidArgument, "{}: the branch '{}' is taken, but these input shapes do not fit it",
         run.node().label(), (taken ? a.then_branch : a.else_branch)->name);
  run.run(body, {});
  for (size_t i = 0; i < run.node().outputs.size(); ++i) run.set_output(i, run.body_output(body, i));
}

// The branch that was taken is computed again and differentiated by what it uses of the graphs around.
void gradient(GradientContext& c) {
  const auto& a = c.attrs<IfAttrs>();
  const std::span<Edge* const> captured = c.inside.captured;
  if (captured.empty()) return;
  std::vector<Attribute> attributes;
  for (const Graph* branch : {a.then_branch, a.else_branch}) {
    expect_no_random_nodes(c, *branch);
    const std::string_view name = branch == a.then_branch ? "then_branch" : "else_branch";
    BackwardBody body(c, name);
    const bool is_known = branch->outputs[0]->facts.type.type != ElementType::kUndefined;
    if (!is_known) {  // never taken: the condition is a constant, or it does not fit these shapes
      for (Edge* edge : captured) body.output(zeros_like(body.build(), edge));
      attributes.push_back(body.attribute(name));
      continue;
    }
    body.copy(*branch);
    for (size_t i = 0; i < c.output_count(); ++i) {
      if (c.gradient(i) != nullptr) body.arrives(branch->outputs[i], c.gradient(i));
    }
    for (Edge* gradient : body.differentiate(captured)) body.output(gradient);
    remove_unused_nodes(body.graph());
    attributes.push_back(body.attribute(name));
  }
  Edge* const condition[] = {c.in(0)};
  const Node* node = c.build.emit("", "If", condition, attributes, captured.size());
  std::copy(node->outputs.begin(), node->outputs.end(), c.inside.of_captured.begin());
}

constexpr ControlFlow kControlFlow = {.run = run};

}  // namespace

extern const OpDef op_if = {
    .name = "If",
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .control_flow = &kControlFlow,
    .gradient = gradient,
};

}  // namespace plimsoll
