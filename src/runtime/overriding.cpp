// Runs that need another preparation: they give initializers another value, or inputs another shape than the
// model declares.
#include <algorithm>

#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

bool has_name(const std::vector<ValueInfo>& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(), [&](const ValueInfo& info) { return info.name == name; });
}

PrepareOptions loose_options(const SessionOptions& options, const LoadOptions::Loose& loose) {
  PrepareOptions result = prepare_options(options);
  result.load.loose = loose;
  return result;
}

}  // namespace

Session::Impl::Impl(Impl& base, const SessionOptions& session_options, const LoadOptions::Loose& loose)
    : env(base.env),
      options(session_options),
      budget("overriding", session_options.memory_limit_bytes, &base.budget),
      model(base.location_.read(loose_options(session_options, loose), budget)),
      arena(base.arena),
      trace(base.trace),
      location_(base.location_) {
  initialize({}, {});
}

std::shared_ptr<Session::Impl> Session::Impl::overriding(std::span<const char* const> input_names) {
  const auto is_constant = [&](std::string_view name) {
    return has_name(overridable, name) && !has_name(inputs, name);
  };
  if (overridable.empty() || std::none_of(input_names.begin(), input_names.end(), is_constant))
    return nullptr;
  const std::lock_guard lock(overriding_mutex_);
  const bool serves =
      overriding_ != nullptr && std::none_of(input_names.begin(), input_names.end(), [&](const char* name) {
        return has_name(overridable, name) && !has_name(overriding_->inputs, name);
      });
  if (!serves) overriding_ = open_overriding(input_names);
  return overriding_;
}

// Serves the names of earlier runs too. The earlier one goes first: it need not fit beside.
std::shared_ptr<Session::Impl> Session::Impl::open_overriding(std::span<const char* const> names) {
  SessionOptions more = options;
  if (overriding_ != nullptr) more.overridden_initializers = overriding_->options.overridden_initializers;
  for (const char* name : names) {
    std::vector<std::string>& known = more.overridden_initializers;
    if (has_name(overridable, name) && std::find(known.begin(), known.end(), name) == known.end())
      known.emplace_back(name);
  }
  overriding_.reset();
  return open_beside(std::move(more), model->options().load.loose);
}

std::shared_ptr<Session::Impl> Session::Impl::open_beside(SessionOptions more,
                                                          const LoadOptions::Loose& loose) {
  const auto take = [&] {
    const int64_t limit = options.memory_limit_bytes;
    if (limit > 0) more.memory_limit_bytes = std::max<int64_t>(1, limit - budget.report().now_bytes);
    return std::shared_ptr<Impl>(new Impl(*this, more, loose));
  };
  // What this one has planned stays: beside the weights it might not be planned again inside the line.
  return take_with_room(take, [&] { env->idle.release_all(); });
}

// A compiled file's graph was prepared for what it declares, and a session that trains has one state.
bool Session::Impl::may_loosen() const {
  const PrepareOptions& prepared = model->options();
  return !options.strict && prepared.compiled == nullptr && !prepared.rewrite && !prepared.finish;
}

std::shared_ptr<Session::Impl> Session::Impl::loosened(const DeclaredShapes::ShapeOf& shape_of) {
  const LoadOptions::Loose needed = declared_.contradicted(shape_of);
  if (needed.is_empty() || !may_loosen()) return nullptr;
  const std::lock_guard lock(overriding_mutex_);
  if (loosened_ != nullptr && loosened_->declared_.contradicted(shape_of).is_empty()) return loosened_;
  LoadOptions::Loose all = joined(needed, model->options().load.loose);
  if (loosened_ != nullptr) all = joined(std::move(all), loosened_->model->options().load.loose);
  loosened_.reset();
  loosened_ = open_beside(options, all);
  return loosened_;
}

std::shared_ptr<Session::Impl> Session::Impl::loosened(std::span<const Value> values) {
  return loosened([&](size_t input) {
    const Value& value = values[input];
    return value && value.IsTensor() ? &value.GetShape() : nullptr;
  });
}

void Session::Impl::forget_overriding() {
  std::shared_ptr<Impl> last, loose;
  const std::unique_lock lock(overriding_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // one is being made
  last.swap(overriding_);
  loose.swap(loosened_);
}

void Session::Impl::make_defaults() {
  if (options.overridden_initializers.empty()) return;
  defaults_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView view = model->default_of(i);
    if (view)
      defaults_[i] = Value::CreateTensor(view.type, {view.dims.begin(), view.dims.end()}, view.data,
                                         static_cast<size_t>(view.bytes()));
  }
}

void Session::Impl::fill_defaults(std::span<Value> values) const {
  for (size_t i = 0; i < defaults_.size(); ++i) {
    if (!values[i]) values[i] = defaults_[i];
  }
}

}  // namespace plimsoll
