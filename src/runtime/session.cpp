#include "plimsoll/session.h"

#include <algorithm>

#include "runtime/make_plan.h"
#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

// Under a line that sessions share, what others keep for their next run makes room for a new one.
std::unique_ptr<Session::Impl> open(const Env& env, const ModelLocation& source,
                                    const SessionOptions& options, const ShapesForInputs& shapes) {
  if (!options.optimized_model_path.empty()) {
    // By itself and before anything else: it takes no room beside the session.
    Budget saving("saving", options.memory_limit_bytes, &env.impl()->budget);
    save_optimized(source, prepare_options(options), false, saving, options.optimized_model_path, nullptr);
  }
  const auto take = [&] { return std::make_unique<Session::Impl>(env, source, options, shapes); };
  if (env.impl()->budget.limit_bytes() == 0) return take();
  return take_with_room(take, [&] { env.impl()->idle.release_all(); });
}

}  // namespace

Session::Session(const Env& env, const std::string& path, const SessionOptions& options,
                 const ShapesForInputs& shapes)
    : impl_(open(env, {path, {}}, options, shapes)) {}
Session::Session(const Env& env, const void* model, size_t size, const SessionOptions& options,
                 const ShapesForInputs& shapes)
    : impl_(open(env, {"", {static_cast<const std::byte*>(model), size}}, options, shapes)) {}
Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

void Session::Run(const RunOptions& options, const char* const* input_names, const Value* inputs,
                  size_t input_count, const char* const* output_names, Value* outputs, size_t output_count) {
  const std::shared_ptr<Impl> other = impl_->overriding({input_names, input_count});
  Impl& impl = other != nullptr ? *other : *impl_;
  std::vector<Value> given(impl.inputs.size());
  for (size_t i = 0; i < input_count; ++i) given[impl.input_index(input_names[i])] = inputs[i];
  impl.fill_defaults(given);
  std::vector<size_t> wanted;
  wanted.reserve(output_count);
  for (size_t i = 0; i < output_count; ++i) wanted.push_back(impl.output_index(output_names[i]));
  const std::shared_ptr<Impl> loose = impl.loosened(given);
  Impl& fitting = loose != nullptr ? *loose : impl;
  fitting.run_some(options, given, wanted, {outputs, output_count});
  if (options.shrink_arena()) fitting.release_idle_regions();
}

std::vector<Value> Session::Run(const RunOptions& options, const char* const* input_names,
                                const Value* inputs, size_t input_count, const char* const* output_names,
                                size_t output_count) {
  std::vector<Value> results(output_count);
  Run(options, input_names, inputs, input_count, output_names, results.data(), output_count);
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
  const std::shared_ptr<Impl> loose = impl_->loosened(io.inputs);
  Impl& fitting = loose != nullptr ? *loose : *impl_;
  if (options.only_execute_path_to_fetches()) {
    std::vector<Value> made;
    for (size_t index : io.order) made.push_back(io.bound[index]);
    fitting.run_some(options, io.inputs, io.order, made);
    for (size_t i = 0; i < made.size(); ++i) io.results[io.order[i]] = made[i];
  } else {
    fitting.run(options, {io.inputs, io.results});
  }
  if (options.shrink_arena()) fitting.release_idle_regions();
}

Plan Session::Prepare(const Shapes& shapes) {
  const std::shared_ptr<Impl> loose = impl_->loosened(shapes_by_name(impl_->inputs, shapes));
  Impl& impl = loose != nullptr ? *loose : *impl_;
  const auto plan = impl.prepare(complete_shapes(impl.model->graph(), shapes, false), {});
  return describe_plan(*impl.model, *plan);
}

Plan Session::Prepare(const Shapes& shapes, const std::vector<std::string>& output_names) {
  Impl::Wanted wanted;
  wanted.emplace();
  for (const std::string& name : output_names)
    wanted->push_back(static_cast<uint32_t>(impl_->output_index(name)));
  std::sort(wanted->begin(), wanted->end());
  wanted->erase(std::unique(wanted->begin(), wanted->end()), wanted->end());
  if (wanted->size() == impl_->model->graph().outputs.size()) wanted.reset();
  const std::shared_ptr<Impl> loose = impl_->loosened(shapes_by_name(impl_->inputs, shapes));
  Impl& impl = loose != nullptr ? *loose : *impl_;
  const auto plan = impl.prepare(complete_shapes(impl.model->graph(), shapes, false), wanted);
  return describe_plan(*impl.model, *plan);
}

Plan Session::MakePlan(const Shapes& shapes) const {
  return make_plan(*impl_->model, shapes, impl_->budget, impl_->options.memory_limit_bytes, false);
}

const std::vector<ValueInfo>& Session::GetInputs() const {
  return impl_->inputs;
}
const std::vector<ValueInfo>& Session::GetOutputs() const {
  return impl_->outputs;
}
std::vector<std::string> Session::GetWarnings() const {
  return impl_->warnings();
}
const std::vector<ValueInfo>& Session::GetOverridableInitializers() const {
  return impl_->overridable;
}
const ModelMetadata& Session::GetModelMetadata() const {
  return impl_->metadata;
}
ArenaStats Session::GetArenaStats() const {
  return impl_->arena != nullptr ? impl_->arena->stats() : ArenaStats{};
}
std::string Session::EndProfiling() {
  return impl_->trace != nullptr ? impl_->trace->finish() : std::string();
}
uint64_t Session::GetProfilingStartTimeNs() const {
  if (impl_->trace == nullptr) return 0;
  return static_cast<uint64_t>(impl_->trace->start().time_since_epoch() / std::chrono::nanoseconds(1));
}

namespace {

std::vector<std::string> names_of(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> names;
  for (const ValueInfo& info : infos) names.push_back(info.name);
  return names;
}

const std::string& name_at(const std::vector<ValueInfo>& infos, size_t index) {
  if (index >= infos.size()) fail(ErrorCode::kInvalidArgument, "name {}: there are {}", index, infos.size());
  return infos[index].name;
}

}  // namespace

std::vector<std::string> Session::GetInputNames() const {
  return names_of(impl_->inputs);
}
std::vector<std::string> Session::GetOutputNames() const {
  return names_of(impl_->outputs);
}
AllocatedStringPtr Session::GetInputNameAllocated(size_t index, const Allocator& allocator) const {
  return allocate_text(name_at(impl_->inputs, index), allocator);
}
AllocatedStringPtr Session::GetOutputNameAllocated(size_t index, const Allocator& allocator) const {
  return allocate_text(name_at(impl_->outputs, index), allocator);
}
AllocatedStringPtr Session::GetOverridableInitializerNameAllocated(size_t index,
                                                                   const Allocator& allocator) const {
  return allocate_text(name_at(impl_->overridable, index), allocator);
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
