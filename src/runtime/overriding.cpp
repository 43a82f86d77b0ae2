// Runs that give initializers another value.
#include <algorithm>

#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

bool has_name(const std::vector<ValueInfo>& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(), [&](const ValueInfo& info) { return info.name == name; });
}

}  // namespace

Session::Impl::Impl(Impl& base, const SessionOptions& session_options)
    : env(base.env),
      options(session_options),
      budget("overriding", session_options.memory_limit_bytes, &base.budget),
      model(base.location_.read(prepare_options(session_options), budget)),
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
  const auto take = [&] {
    const int64_t limit = options.memory_limit_bytes;
    if (limit > 0) more.memory_limit_bytes = std::max<int64_t>(1, limit - budget.report().now_bytes);
    return std::shared_ptr<Impl>(new Impl(*this, more));
  };
  // What this one has planned stays: beside the weights it might not be planned again inside the line.
  return take_with_room(take, [&] { env->idle.release_all(); });
}

void Session::Impl::forget_overriding() {
  std::shared_ptr<Impl> last;
  const std::unique_lock lock(overriding_mutex_, std::try_to_lock);
  if (lock.owns_lock()) last.swap(overriding_);  // otherwise it is being made
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
