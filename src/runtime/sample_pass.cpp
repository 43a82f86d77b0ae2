#include "runtime/sample_pass.h"

#include <algorithm>

#include "prepare/lower.h"
#include "runtime/make_plan.h"

namespace plimsoll {

SamplePass::SamplePass(const Env& env, const std::string& model, SamplePassOptions options)
    : env_(env), model_(model), options_(std::move(options)) {}

int64_t SamplePass::each(const std::function<void(const std::vector<Value>&, int64_t)>& f) {
  int64_t count = 0;
  std::map<std::string, Value> sample;
  while (next(sample, count)) {
    if (options_.progress) options_.progress(options_.stage, count, 0);
    f(run(sample, count), count);
    ++count;
    sample.clear();
  }
  return count;
}

SessionOptions SamplePass::session_options() const {
  SessionOptions session;
  session.memory_limit_bytes = options_.memory_limit_bytes;
  session.intra_op_threads = options_.threads;
  session.optimization_level = options_.level;
  return session;
}

ModelLocation SamplePass::location() const {
  const auto observed = [this](Graph& graph) {
    inline_functions(graph);
    if (options_.rewrite) options_.rewrite(graph);
  };
  return {model_, {}, observed};
}

namespace {

Shapes shapes_of(const std::map<std::string, Value>& sample, const std::vector<ValueInfo>& inputs) {
  Shapes known;
  for (const auto& [name, value] : sample) {
    const auto is_it = [&given = name](const ValueInfo& input) { return input.name == given; };
    if (std::none_of(inputs.begin(), inputs.end(), is_it))
      fail(ErrorCode::kInvalidArgument, "there is no input '{}'", name);
  }
  for (const ValueInfo& input : inputs) {
    const auto value = sample.find(input.name);
    if (value != sample.end() && value->second && value->second.IsTensor())
      known[input.name] = value->second.GetShape();
  }
  return known;
}

}  // namespace

// The shapes of the first sample are told at once, so that what cannot fit is refused with the limit that
// would do.
void SamplePass::open(const std::map<std::string, Value>& sample) {
  const auto shapes = [&](const std::vector<ValueInfo>& inputs) { return shapes_of(sample, inputs); };
  SessionRewrite inferred;
  inferred.graph = options_.rewrite_inferred;
  inferred.drop_pages = options_.drop_pages;
  session_ = std::make_unique<Session::Impl>(env_, location(), session_options(), shapes, inferred);
}

SamplePass::Needs SamplePass::needs() const {
  std::map<std::string, Value> sample;
  if (!next(sample, 0)) return {};
  Budget planning("planning", 0, &env_.impl()->budget);
  PrepareOptions preparation = prepare_options(session_options());
  preparation.rewrite = options_.rewrite_inferred;
  preparation.spend_memory = false;
  const std::unique_ptr<PreparedModel> model = location().read(preparation, planning);
  model->prepare();
  const Shapes shapes = shapes_of(sample, describe_inputs(model->graph()));
  const Plan plan = make_plan(*model, shapes, planning, 0, true);
  return {plan.peak_bytes, plan.minimum_limit_bytes};
}

bool SamplePass::next(std::map<std::string, Value>& sample, int64_t number) const {
  try {
    return options_.reader->Next(sample);
  } catch (const Error& error) {
    fail(error.code(), "{} sample {}: {}", options_.subject, number, error.what());
  }
}

std::vector<Value> SamplePass::run(const std::map<std::string, Value>& sample, int64_t number) {
  try {
    if (session_ == nullptr) open(sample);
    std::vector<Value> inputs(session_->inputs.size()), outputs(session_->outputs.size());
    for (const auto& [name, value] : sample) inputs[session_->input_index(name)] = value;
    session_->fill_defaults(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) fail(ErrorCode::kInvalidArgument, "input '{}' is not given", session_->inputs[i].name);
    }
    if (number == 0) tell(inputs);
    session_->run({}, {inputs, outputs});
    return outputs;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    fail(error.code(), "{} sample {}: {}", options_.subject, number, error.what());
  }
}

void SamplePass::tell(const std::vector<Value>& inputs) {
  Shapes shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].IsTensor()) return;
    shapes[session_->inputs[i].name] = inputs[i].GetShape();
  }
  Budget planning("planning", 0);
  told_ = make_plan(*session_->model, shapes, planning, options_.memory_limit_bytes, true).peak_bytes;
}

}  // namespace plimsoll
