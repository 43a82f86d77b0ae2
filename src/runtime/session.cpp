#include "plimsoll/session.h"

#include <algorithm>

#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

// Under a line that sessions share, what others keep for their next run makes room for a new one.
template <typename Source>
std::unique_ptr<Session::Impl> open(const Env& env, const Source& source, const SessionOptions& options,
                                    const ShapesForInputs& shapes) {
  const auto take = [&] { return std::make_unique<Session::Impl>(env, source, options, shapes); };
  if (env.impl()->budget.limit_bytes() == 0) return take();
  return take_with_room(take, [&] { env.impl()->idle.release_all(); });
}

}  // namespace

Session::Session(const Env& env, const std::string& path, const SessionOptions& options,
                 const ShapesForInputs& shapes)
    : impl_(open(env, path, options, shapes)) {}
Session::Session(const Env& env, const void* model, size_t size, const SessionOptions& options)
    : impl_(open(env, std::span(static_cast<const std::byte*>(model), size), options, {})) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

std::vector<Value> Session::Run(const RunOptions& options, const char* const* input_names,
                                const Value* inputs, size_t input_count, const char* const* output_names,
                                size_t output_count) {
  const std::shared_ptr<Impl> other = impl_->overriding({input_names, input_count});
  Impl& impl = other != nullptr ? *other : *impl_;
  std::vector<Value> given(impl.inputs.size()), made(impl.outputs.size());
  for (size_t i = 0; i < input_count; ++i) given[impl.input_index(input_names[i])] = inputs[i];
  impl.fill_defaults(given);
  std::vector<size_t> wanted;
  wanted.reserve(output_count);
  for (size_t i = 0; i < output_count; ++i) wanted.push_back(impl.output_index(output_names[i]));
  impl.run(options, {given, made});
  std::vector<Value> results;
  results.reserve(wanted.size());
  for (size_t index : wanted) results.push_back(made[index]);
  return results;
}

std::vector<Value> Session::Run(const RunOptions& options, const std::vector<std::string>& input_names,
                                const std::vector<Value>& inputs,
                                const std::vector<std::string>& output_names) {
  if (input_names.size() != inputs.size())
    fail(ErrorCode::kInvalidArgument, "{} input names for {} inputs", input_names.size(), inputs.size());
  std::vector<const char*> in, out;
  for (const std::string& name : input_names) in.push_back(name.c_str());
  for (const std::string& name : output_names) out.push_back(name.c_str());
  return Run(options, in.data(), inputs.data(), in.size(), out.data(), out.size());
}

void Session::Run(const RunOptions& options, IoBinding& binding) {
  IoBinding::Impl& io = *binding.impl_;
  if (io.session != impl_.get()) fail(ErrorCode::kInvalidArgument, "the binding belongs to another session");
  std::copy(io.bound.begin(), io.bound.end(), io.results.begin());
  impl_->fill_defaults(io.inputs);
  impl_->run(options, {io.inputs, io.results});
}

Plan Session::Prepare(const Shapes& shapes) {
  const auto plan = impl_->prepare(complete_shapes(impl_->model->graph(), shapes, false));
  return describe_plan(*impl_->model, *plan);
}

const std::vector<ValueInfo>& Session::GetInputs() const {
  return impl_->inputs;
}
const std::vector<ValueInfo>& Session::GetOutputs() const {
  return impl_->outputs;
}
std::vector<std::string> Session::GetWarnings() const {
  return describe_warnings(impl_->model->graph());
}
const std::vector<ValueInfo>& Session::GetOverridableInitializers() const {
  return impl_->overridable;
}
MemoryReport Session::GetMemoryReport() const {
  return impl_->budget.report();
}
void Session::ReleaseMemory() {
  impl_->release_memory();
}

void Session::EnableProfiling(bool on) {
  impl_->enable_profiling(on);
}

std::vector<Session::ProfileEntry> Session::GetProfile() const {
  std::vector<ProfileEntry> result;
  const Profile profile = impl_->profile();
  for (const Profile::Entry& entry : profile.entries) {
    if (entry.count == 0) continue;
    result.push_back({std::string(entry.node->name), std::string(entry.node->op_type), entry.count,
                      static_cast<double>(entry.nanoseconds) * 1e-6, entry.operations, entry.bytes});
  }
  return result;
}

}  // namespace plimsoll
