// Loop backwards: another Loop of as many turns, which reads what was carried into each turn from its end on,
// computes the turn again and carries the gradients of carried values and the sums of those of captured ones.
#include "ops/body_gradient.h"

namespace plimsoll {
namespace {

TypeInfo scalar_type(ElementType type) {
  return {ValueKind::kTensor, type, ElementType::kUndefined, true, {}, nullptr};
}

constexpr size_t kCondition = 1, kFirstCarried = 2;

// Numbers of the carried values that are floats. All are of one shape, or this is an Error.
std::vector<size_t> real_values(const GradientContext& c, const Graph& forward) {
  std::vector<size_t> real;
  for (size_t i = kFirstCarried; i < c.input_count(); ++i) {
    const TypeInfo& type = forward.inputs[i]->facts.type;
    expect_same_shape(c, i - kFirstCarried, c.input(i).type, type);
    if (is_real(type)) real.push_back(i - kFirstCarried);
  }
  return real;
}

}  // namespace

void gradient_loop(GradientContext& c) {
  Graph& forward = *c.node().attribute("body")->graph;
  expect_no_random_nodes(c, forward);
  const std::vector<size_t> real = real_values(c, forward);
  const size_t carried = c.input_count() - kFirstCarried;
  const std::span<Edge* const> captured = c.inside.captured;

  BackwardBody body(c, "body");
  Edge* turn = body.input("turn", scalar_type(ElementType::kInt64));
  Edge* condition = body.input("condition", scalar_type(ElementType::kBool));
  Edge* from_end = body.build().op("Sub", {body.build().scalar(int64_t{-1}), turn});
  const auto of_turn = [&](Edge* stack) { return body.build().op("Gather", {stack, from_end}); };
  std::vector<Edge*> of_values, of_captured, inputs{nullptr, nullptr};
  for (const size_t i : real) {
    of_values.push_back(body.input("d_value", forward.inputs[i + kFirstCarried]->facts.type));
    inputs.push_back(c.gradient(i) != nullptr ? c.gradient(i) : zeros_like(c.build, c.in(i + kFirstCarried)));
  }
  for (Edge* edge : captured) {
    of_captured.push_back(body.input("d_captured", edge->facts.type));
    inputs.push_back(zeros_like(c.build, edge));
  }

  TurnStacks stacks(c, forward);
  Edge* numbers = stacks.add(forward.inputs[0]);  // of the turns: always there, to tell how many they were
  body.bind(forward.inputs[0], of_turn(numbers));
  for (size_t i = kFirstCarried; i < forward.inputs.size(); ++i)
    body.bind(forward.inputs[i], of_turn(stacks.add(forward.inputs[i])));
  const size_t rank = forward.inputs[kCondition]->facts.type.rank();
  const std::vector<int64_t> ones(rank, 1);
  const std::byte yes{1};  // no turn starts otherwise
  body.bind(forward.inputs[kCondition],
            c.build.constant("true", ElementType::kBool, ones, std::span<const std::byte>(&yes, 1)));
  body.copy(forward);
  for (size_t k = 0; k < real.size(); ++k) body.arrives(forward.outputs[real[k] + 1], of_values[k]);
  for (size_t i = carried; i < c.output_count(); ++i) {
    if (c.gradient(i) != nullptr) body.arrives(forward.outputs[i + 1], of_turn(c.gradient(i)));
  }

  std::vector<Edge*> xs;
  for (const size_t i : real) xs.push_back(body.now(forward.inputs[i + kFirstCarried]));
  xs.insert(xs.end(), captured.begin(), captured.end());
  const std::vector<Edge*> gradients = body.differentiate(xs);
  body.output(body.own(condition));
  for (size_t k = 0; k < real.size(); ++k) body.output(gradients[k]);
  for (size_t k = 0; k < captured.size(); ++k)
    body.output(body.build().op("Add", {of_captured[k], gradients[real.size() + k]}));
  remove_unused_nodes(body.graph());
  std::unordered_set<const Edge*> used = used_edges(body.graph());
  used.insert(numbers);
  stacks.keep(used);

  inputs[0] = c.op("Size", {numbers});
  const Attribute attributes[] = {body.attribute("body")};
  const Node* node = c.build.emit("", "Loop", inputs, attributes, real.size() + captured.size());
  for (size_t k = 0; k < real.size(); ++k) c.set(real[k] + kFirstCarried, node->outputs[k]);
  std::copy(node->outputs.begin() + static_cast<ptrdiff_t>(real.size()), node->outputs.end(),
            c.inside.of_captured.begin());
}

}  // namespace plimsoll
