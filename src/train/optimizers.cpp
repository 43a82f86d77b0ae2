#include "train/optimizers.h"

#include "base/fail.h"
#include "graph/op_def.h"
#include "train/losses.h"

namespace plimsoll {
namespace {

// An operator's name, its attributes, and its states by name; an empty name is a state that it does without.
struct Update {
  std::string_view op;
  AttributeList attributes;
  std::vector<std::string_view> states;
};

float epsilon_or(const OptimizerOptions& options, float own) {
  return options.epsilon < 0 ? own : options.epsilon;
}

Update adam(const OptimizerOptions& o, AttributeList attributes, int64_t decay_mode) {
  attributes.set("beta1", o.beta1).set("beta2", o.beta2).set("epsilon", epsilon_or(o, 1e-8f));
  return {"UpdateAdam", attributes.set("decay_mode", decay_mode), {"momentum0", "momentum1"}};
}

Update describe(const OptimizerOptions& o, AttributeList attributes) {
  attributes.set("clip", o.max_grad_value).set("weight_decay", o.weight_decay);
  switch (o.type) {
    case OptimizerType::kSGD:
      attributes.set("momentum", o.momentum)
          .set("dampening", o.dampening)
          .set("nesterov", int64_t{o.nesterov});
      if (o.momentum == 0) return {"UpdateSgd", attributes, {}};
      return {"UpdateSgd", attributes, {"momentum0"}};
    case OptimizerType::kAdam:
      return adam(o, attributes, 0);
    case OptimizerType::kAdamW:
      return adam(o, attributes, 1);
    case OptimizerType::kAdamWHuggingFace:
      return adam(o, attributes, 2);
    case OptimizerType::kAdagrad:
      attributes.set("rate_decay", o.rate_decay).set("epsilon", epsilon_or(o, 1e-10f));
      return {"UpdateAdagrad", attributes, {"sum"}};
    case OptimizerType::kRMSprop: {
      attributes.set("alpha", o.alpha).set("momentum", o.momentum).set("epsilon", epsilon_or(o, 1e-8f));
      Update update{"UpdateRmsProp", attributes, {"square"}};
      if (o.centered || o.momentum != 0) update.states.push_back(o.centered ? "mean" : "");
      if (o.momentum != 0) update.states.push_back("momentum0");
      return update;
    }
    case OptimizerType::kLamb:
      attributes.set("beta1", o.beta1).set("beta2", o.beta2).set("epsilon", epsilon_or(o, 1e-6f));
      return {"UpdateLamb", attributes, {"momentum0", "momentum1"}};
  }
  fail(ErrorCode::kInvalidArgument, "optimizer: there is no number {}", static_cast<int>(o.type));
}

}  // namespace

void add_optimizer(Graph& graph, const OptimizerOptions& options, Edge* parameter, Edge* gradient,
                   const UpdateNumbers& numbers) {
  TrainBuilder build(graph, "update");
  const Update update = describe(options, build.attributes());
  std::vector<Edge*> inputs = {parameter, gradient, numbers.rate, numbers.step, numbers.scale, numbers.guard};
  std::vector<Edge*> outputs = {graph.add_edge(fmt::format("{}.next", parameter->name))};
  const auto output_for = [&](Edge* state) {
    outputs.push_back(state == nullptr ? nullptr : graph.add_edge(fmt::format("{}.next", state->name)));
  };
  for (std::string_view name : update.states) {
    Edge* state = nullptr;
    if (!name.empty())
      state = graph.add_state(fmt::format("{}.{}", parameter->name, name), parameter->data->type,
                              parameter->data->dims, Account::kOptimizer);
    inputs.push_back(state);
    output_for(state);
  }
  const Node* node = build.emit_into(outputs, kPlimsollDomain, update.op, inputs, update.attributes.list());
  graph.add_update(parameter, node->outputs[0]);
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) graph.add_update(inputs[5 + i], node->outputs[i]);
  }
}

}  // namespace plimsoll
