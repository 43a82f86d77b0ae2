#include <algorithm>
#include <cmath>
#include <cstring>

#include "onnx/writer.h"
#include "runtime/training_session_impl.h"

namespace plimsoll {

TrainingSession::TrainingSession(const Env& env, const std::string& model_path,
                                 const TrainingOptions& options)
    : impl_(std::make_unique<Impl>(env, model_path, options)) {}
TrainingSession::TrainingSession(const Env& env, const std::string& model_path, const CheckpointState& state,
                                 const TrainingOptions& options)
    : TrainingSession(env, model_path, options) {
  SetState(state);
}
TrainingSession::TrainingSession(TrainingSession&&) noexcept = default;
TrainingSession& TrainingSession::operator=(TrainingSession&&) noexcept = default;
TrainingSession::~TrainingSession() = default;

Plan TrainingSession::GetPlan() const {
  if (impl_->shapes.empty())
    fail(ErrorCode::kInvalidArgument, "training: a plan needs shapes, and none are known yet");
  return describe_training(*impl_->session->model, impl_->graph, impl_->plans());
}

std::vector<std::string> TrainingSession::InputNames(bool) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < impl_->graph.given_inputs; ++i) names.push_back(impl_->session->inputs[i].name);
  return names;
}

const std::vector<ValueInfo>& TrainingSession::GetInputs() const {
  return impl_->session->inputs;
}

std::vector<std::string> TrainingSession::OutputNames(bool training) const {
  std::vector<std::string> names = {"loss"};
  for (size_t i = 0; !training && i < impl_->graph.model_outputs; ++i)
    names.push_back(impl_->session->outputs[i].name);
  return names;
}

std::vector<Value> TrainingSession::TrainStep(const std::vector<Value>& inputs) {
  std::vector<Value> outputs(1);
  TrainStep(inputs, outputs);
  return outputs;
}
void TrainingSession::TrainStep(std::span<const Value> inputs, std::span<Value> outputs) {
  impl_->train(inputs, outputs);
}

std::vector<Value> TrainingSession::EvalStep(const std::vector<Value>& inputs) {
  std::vector<Value> outputs(1 + impl_->graph.model_outputs);
  EvalStep(inputs, outputs);
  return outputs;
}
// The graph has the loss last.
void TrainingSession::EvalStep(std::span<const Value> inputs, std::span<Value> outputs) {
  if (outputs.size() != 1 + impl_->graph.model_outputs)
    fail(ErrorCode::kInvalidArgument, "EvalStep: expected {} outputs, found {}",
         1 + impl_->graph.model_outputs, outputs.size());
  struct Rotation {
    std::span<Value> values;
    explicit Rotation(std::span<Value> v) : values(v) { std::rotate(v.begin(), v.begin() + 1, v.end()); }
    ~Rotation() { std::rotate(values.begin(), values.end() - 1, values.end()); }
  } const rotation(outputs);
  impl_->evaluate(inputs, outputs);
}

void TrainingSession::OptimizerStep() {
  impl_->optimize();
}
void TrainingSession::LazyResetGrad() {
  impl_->reset = true;
}
void TrainingSession::SetGradientScale(float scale) {
  if (!std::isfinite(scale))
    fail(ErrorCode::kInvalidArgument, "gradient scale: expected a finite number, found {}", scale);
  impl_->scale = scale;
}

void TrainingSession::SetLearningRate(float rate) {
  if (!std::isfinite(rate) || rate < 0)
    fail(ErrorCode::kInvalidArgument, "learning rate: expected a finite number of at least 0, found {}",
         rate);
  impl_->rate = rate;
}
float TrainingSession::GetLearningRate() const {
  return impl_->rate;
}
void TrainingSession::RegisterLinearLRScheduler(int64_t warmup_steps, int64_t total_steps,
                                                float initial_rate) {
  ScheduleOptions linear;
  linear.type = ScheduleOptions::Type::kLinear;
  linear.warmup_steps = warmup_steps;
  linear.total_steps = total_steps;
  RegisterLRScheduler(linear, initial_rate);
}
void TrainingSession::RegisterLRScheduler(const ScheduleOptions& schedule, float initial_rate) {
  SetLearningRate(initial_rate);
  impl_->schedule = {};
  impl_->schedule.options = schedule;
  impl_->schedule.initial_rate = static_cast<double>(initial_rate);
  impl_->rate = static_cast<float>(impl_->schedule.rate());
}
void TrainingSession::SchedulerStep() {
  ++impl_->schedule.step;
  impl_->rate = static_cast<float>(impl_->schedule.rate());
}
void TrainingSession::SchedulerStep(double evaluation_loss) {
  impl_->schedule.evaluate(evaluation_loss);
  impl_->rate = static_cast<float>(impl_->schedule.rate());
}
int64_t TrainingSession::GetStep() const {
  return impl_->step;
}

CheckpointState TrainingSession::GetState() const {
  CheckpointState state;
  CheckpointState::Impl& copy = *state.impl();
  copy.contents = impl_->contents();
  for (CheckpointEntry& entry : copy.contents.entries) {
    Value value = Value::CreateTensor(entry.type, entry.dims);
    if (!entry.bytes.empty()) std::memcpy(value.GetMutableData(), entry.bytes.data(), entry.bytes.size());
    entry.bytes = {static_cast<const std::byte*>(value.GetData()), entry.bytes.size()};
    copy.values.push_back(value);
  }
  return state;
}

void TrainingSession::SetState(const CheckpointState& state) {
  impl_->set(state.impl()->contents);
}

void TrainingSession::SaveCheckpoint(const std::string& path, const CheckpointState& more) const {
  CheckpointContents contents = impl_->contents();
  contents.properties.insert(more.impl()->contents.properties.begin(),
                             more.impl()->contents.properties.end());
  write_checkpoint(path, contents);
}

std::vector<std::string> TrainingSession::ParameterNames() const {
  std::vector<std::string> names;
  for (const Edge* edge : impl_->graph.parameters) names.emplace_back(edge->name);
  return names;
}

Value TrainingSession::GetParameter(const std::string& name) const {
  const Edge& edge = impl_->parameter(name);
  const std::span<std::byte> bytes = impl_->bytes(edge);
  return Value::CreateTensor(edge.data->type, {edge.data->dims.begin(), edge.data->dims.end()}, bytes.data(),
                             bytes.size());
}

int64_t TrainingSession::GetParametersSize(bool) const {
  int64_t elements = 0;
  for (const Edge* edge : impl_->graph.parameters) elements += edge->data->view().elements();
  return elements;
}

namespace {

// One buffer holds one type.
void expect_floats(const Edge& edge) {
  if (edge.data->type != ElementType::kFloat)
    fail(ErrorCode::kNotImplemented, "training: a buffer of parameters: expected float, '{}' is {}",
         edge.name, element_type_name(edge.data->type));
}

}  // namespace

Value TrainingSession::ToBuffer(bool only_trainable) const {
  Value buffer = Value::CreateTensor(ElementType::kFloat, {GetParametersSize(only_trainable)});
  auto* at = static_cast<std::byte*>(buffer.GetMutableData());
  for (const Edge* edge : impl_->graph.parameters) {
    expect_floats(*edge);
    const std::span<std::byte> bytes = impl_->bytes(*edge);
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  }
  return buffer;
}

void TrainingSession::FromBuffer(const Value& buffer) {
  for (const Edge* edge : impl_->graph.parameters) expect_floats(*edge);
  if (!buffer || !buffer.IsTensor() || buffer.GetElementType() != ElementType::kFloat ||
      static_cast<int64_t>(buffer.GetElementCount()) != GetParametersSize())
    fail(ErrorCode::kInvalidArgument, "FromBuffer: expected {} floats, found {}", GetParametersSize(),
         buffer ? buffer.GetTypeInfo() : "nothing");
  const auto* at = static_cast<const std::byte*>(buffer.GetData());
  for (const Edge* edge : impl_->graph.parameters) {
    const std::span<std::byte> bytes = impl_->bytes(*edge);
    std::memcpy(bytes.data(), at, bytes.size());
    at += bytes.size();
  }
}

// The file is read anew: what was rewritten for training stays here.
void TrainingSession::ExportModelForInferencing(const std::string& path,
                                                const std::vector<std::string>& output_names) const {
  Budget budget("export", 0, &impl_->env->budget);
  const std::unique_ptr<PreparedModel> model =
      ModelLocation{impl_->path, {}}.read(prepare_options(impl_->options.session), budget);
  Graph& graph = model->graph();
  for (const Edge* state : impl_->graph.states) {
    if (state->account != Account::kWeights) continue;
    const auto initializer = std::find_if(graph.initializers.begin(), graph.initializers.end(),
                                          [&](const Edge* edge) { return edge->name == state->name; });
    if (initializer == graph.initializers.end())
      fail(ErrorCode::kInvalidModel,
           "model '{}': expected initializer '{}', as when it was opened; found none", impl_->path,
           state->name);
    TensorData data = *(*initializer)->data;
    if (data.type != state->data->type || !std::ranges::equal(data.dims, state->data->dims))
      fail(ErrorCode::kInvalidModel, "model '{}': initializer '{}' has changed since it was opened",
           impl_->path, state->name);
    data.bytes = impl_->bytes(*state);
    data.in_file = false;
    (*initializer)->set_data(graph.arena(), data);
  }
  if (!output_names.empty()) {
    std::vector<Edge*> kept;
    for (const std::string& name : output_names) {
      const auto output = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                       [&](const Edge* edge) { return edge->name == name; });
      if (output == graph.outputs.end())
        fail(ErrorCode::kInvalidArgument, "export: there is no output '{}'", name);
      kept.push_back(*output);
    }
    graph.outputs.clear();
    for (Edge* edge : kept) graph.outputs.push_back(edge);
  }
  write_model(graph, path);
}

MemoryReport TrainingSession::GetMemoryReport() const {
  return impl_->session->budget.report();
}

std::vector<std::string> TrainingSession::GetWarnings() const {
  return impl_->session->warnings();
}

}  // namespace plimsoll
