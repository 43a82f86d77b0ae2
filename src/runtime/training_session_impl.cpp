#include "runtime/training_session_impl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace plimsoll {
namespace {

SessionOptions session_options(const TrainingOptions& training) {
  SessionOptions options = training.session;
  options.max_concurrent_runs = 1;
  options.random_seed = std::max<uint64_t>(1, training.seed);
  options.plan_cache_bytes = std::numeric_limits<int64_t>::max() / 2;  // those of a step stay
  return options;
}

StateRole role_of(const Edge& state, const TrainingGraph& graph) {
  if (state.account == Account::kGradients) return StateRole::kGradient;
  if (state.account == Account::kOptimizer) return StateRole::kOptimizer;
  const auto& trained = graph.parameters;
  return std::find(trained.begin(), trained.end(), &state) != trained.end() ? StateRole::kParameter
                                                                            : StateRole::kStatistic;
}

constexpr const char *kStepName = "plimsoll.step", *kRateName = "plimsoll.rate",
                     *kCounterName = "plimsoll.counter", *kSeedName = "plimsoll.seed",
                     *kResetName = "plimsoll.reset", *kScheduleName = "plimsoll.schedule";

template <typename T>
std::optional<T> find_property(const CheckpointContents& contents, const char* name) {
  const auto found = contents.properties.find(name);
  if (found == contents.properties.end()) return std::nullopt;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail(ErrorCode::kInvalidModel, "checkpoint: property '{}' has another type", name);
  return *value;
}

}  // namespace

TrainingSession::Impl::Impl(const Env& environment, const std::string& model_path,
                            const TrainingOptions& training)
    : env(environment.impl()), path(model_path), options(training) {
  check_options(options);
  const Session::Impl::Rewrite rewrite = training_rewrite(options, graph);
  session = std::make_unique<Session::Impl>(environment, ModelLocation{path, {}}, session_options(options),
                                            ShapesForInputs(), rewrite);
  train_run = graph.train;
  if (!graph.optimize.empty()) optimizer_run = graph.optimize;
  evaluation_run = graph.evaluate;
  schedule.options = options.schedule;
  schedule.initial_rate = static_cast<double>(options.optimizer.learning_rate);
  rate = static_cast<float>(schedule.rate());
  values_.resize(session->inputs.size());
  values_[graph.rate] = Value::CreateTensor(ElementType::kFloat, {});
  values_[graph.step] = Value::CreateTensor(ElementType::kInt64, {});
  if (graph.reset != 0) values_[graph.reset] = Value::CreateTensor(ElementType::kBool, {});
  if (graph.scale != 0) values_[graph.scale] = Value::CreateTensor(ElementType::kFloat, {});
  shapes = complete_shapes(session->model->graph(), rewrite.shapes(session->model->graph()), true);
}

void TrainingSession::Impl::set_numbers() {
  *values_[graph.rate].GetTensorMutableData<float>() = rate;
  *values_[graph.step].GetTensorMutableData<int64_t>() = step + 1;
  if (graph.reset != 0) *values_[graph.reset].GetTensorMutableData<bool>() = reset;
  if (graph.scale != 0) *values_[graph.scale].GetTensorMutableData<float>() = scale;
}

void TrainingSession::Impl::check_given(std::span<const Value> inputs) const {
  if (inputs.size() != graph.given_inputs) {
    std::string names;
    for (size_t i = 0; i < graph.given_inputs; ++i) names += fmt::format(" '{}'", session->inputs[i].name);
    fail(ErrorCode::kInvalidArgument, "a step: expected {} inputs,{}; found {}", graph.given_inputs, names,
         inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] && inputs[i].IsTensor() && inputs[i].GetElementCount() == 0)
      fail(ErrorCode::kInvalidArgument, "a step: input '{}': expected at least one element, found {}",
           session->inputs[i].name, inputs[i].GetTypeInfo());
  }
}

void TrainingSession::Impl::run(std::span<const Value> inputs, std::span<Value> outputs,
                                const ShapePlan::Wanted& wanted) {
  struct Release {  // the caller's memory is the caller's
    std::span<Value> values;
    ~Release() {
      for (Value& value : values) value = Value();
    }
  } const release{std::span(values_).first(graph.given_inputs)};
  std::copy(inputs.begin(), inputs.end(), values_.begin());
  set_numbers();
  session->run(run_options_, {values_, outputs, &wanted, static_cast<uint64_t>(counter)});
}

void TrainingSession::Impl::train(std::span<const Value> inputs, std::span<Value> outputs) {
  check_given(inputs);
  run(inputs, outputs, train_run);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (shapes.size() != values_.size()) shapes.resize(values_.size());
    if (shapes[i] != inputs[i].GetShape()) {
      shapes[i] = inputs[i].GetShape();
      absent_.clear();
    }
  }
  ++counter;
  reset = false;
  if (options.keep_gradients) return;
  ++step;
}

void TrainingSession::Impl::evaluate(std::span<const Value> inputs, std::span<Value> outputs) {
  if (!options.evaluate) fail(ErrorCode::kInvalidArgument, "EvalStep: the session was opened without it");
  check_given(inputs);
  run(inputs, outputs, evaluation_run);
}

void TrainingSession::Impl::optimize() {
  if (!options.keep_gradients)
    fail(ErrorCode::kInvalidArgument,
         "OptimizerStep: every TrainStep of this session updates the parameters itself (keep_gradients)");
  if (counter == 0 || shapes.empty())
    fail(ErrorCode::kInvalidArgument, "OptimizerStep: expected a TrainStep before, found none");
  // What it does not read still tells the shapes that were planned.
  if (absent_.empty()) {
    static std::byte nothing;
    for (size_t i = 0; i < graph.given_inputs; ++i)
      absent_.push_back(
          Value::CreateTensor(session->inputs[i].type, shapes[i], &nothing,
                              static_cast<size_t>(tensor_bytes(session->inputs[i].type, shapes[i]))));
  }
  run(absent_, {}, optimizer_run);
  ++step;
}

std::vector<std::shared_ptr<ShapePlan>> TrainingSession::Impl::plans() {
  std::vector<std::shared_ptr<ShapePlan>> all;
  for (const ShapePlan::Wanted& wanted : training_runs(options, graph))
    all.push_back(session->prepare(shapes, wanted));
  return all;
}

std::span<std::byte> TrainingSession::Impl::bytes(const Edge& state) const {
  return {session->model->weights().raw(state), static_cast<size_t>(state.data->view().bytes())};
}

const Edge& TrainingSession::Impl::parameter(const std::string& name) const {
  for (const Edge* edge : graph.parameters) {
    if (edge->name == name) return *edge;
  }
  fail(ErrorCode::kInvalidArgument, "training: there is no parameter '{}'", name);
}

CheckpointContents TrainingSession::Impl::contents() const {
  CheckpointContents all;
  for (const Edge* state : graph.states) {
    all.entries.push_back({std::string(state->name),
                           role_of(*state, graph),
                           state->data->type,
                           {state->data->dims.begin(), state->data->dims.end()},
                           bytes(*state)});
  }
  all.properties[kStepName] = step;
  all.properties[kRateName] = rate;
  all.properties[kCounterName] = counter;
  all.properties[kSeedName] = static_cast<int64_t>(options.seed);
  all.properties[kResetName] = int64_t{reset};
  all.properties[kScheduleName] = schedule.to_text();
  return all;
}

// All of it is looked at before anything changes.
void TrainingSession::Impl::set(const CheckpointContents& contents) {
  std::vector<std::pair<const Edge*, const CheckpointEntry*>> found;
  for (const Edge* state : graph.states) {
    const auto entry = std::find_if(contents.entries.begin(), contents.entries.end(),
                                    [&](const CheckpointEntry& e) { return e.name == state->name; });
    const bool have = entry != contents.entries.end();
    const StateRole role = role_of(*state, graph);
    if (!have && role != StateRole::kOptimizer && role != StateRole::kGradient)
      fail(ErrorCode::kInvalidArgument, "checkpoint: expected '{}', which the model has; found none",
           state->name);
    if (have && (entry->type != state->data->type || entry->bytes.size() != bytes(*state).size() ||
                 !std::equal(entry->dims.begin(), entry->dims.end(), state->data->dims.begin(),
                             state->data->dims.end())))
      fail(ErrorCode::kInvalidArgument, "checkpoint: '{}': expected {}{}, found {}{}", state->name,
           element_type_name(state->data->type), to_string(state->data->dims), element_type_name(entry->type),
           to_string(entry->dims));
    found.emplace_back(state, have ? &*entry : nullptr);
  }
  const auto new_step = find_property<int64_t>(contents, kStepName);
  const auto new_counter = find_property<int64_t>(contents, kCounterName);
  const auto new_rate = find_property<float>(contents, kRateName);
  const auto new_reset = find_property<int64_t>(contents, kResetName);
  RateSchedule new_schedule = schedule;
  if (const auto text = find_property<std::string>(contents, kScheduleName)) new_schedule.from_text(*text);
  for (const auto& [state, entry] : found) {
    const std::span<std::byte> to = bytes(*state);
    if (entry == nullptr) std::memset(to.data(), 0, to.size());
    if (entry != nullptr && !to.empty()) std::memcpy(to.data(), entry->bytes.data(), to.size());
  }
  step = new_step.value_or(0);
  counter = new_counter.value_or(0);
  reset = new_reset.value_or(1) != 0;
  schedule = new_schedule;
  if (new_rate) rate = *new_rate;
}

}  // namespace plimsoll
