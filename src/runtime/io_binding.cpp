#include "plimsoll/io_binding.h"

#include <algorithm>

#include "runtime/session_impl.h"

namespace plimsoll {

IoBinding::IoBinding(Session& session) : impl_(std::make_unique<Impl>()) {
  impl_->session = session.impl_.get();
  impl_->inputs.resize(impl_->session->inputs.size());
}
IoBinding::IoBinding(IoBinding&&) noexcept = default;
IoBinding& IoBinding::operator=(IoBinding&&) noexcept = default;
IoBinding::~IoBinding() = default;

void IoBinding::BindInput(const std::string& name, const Value& value) {
  impl_->inputs[impl_->session->input_index(name)] = value;
}

void IoBinding::BindOutput(const std::string& name, const Value& value) {
  const size_t index = impl_->session->output_index(name);
  for (auto& [bound, kept] : impl_->outputs) {
    if (bound == index) {
      kept = value;
      return;
    }
  }
  impl_->outputs.emplace_back(index, value);
}

void IoBinding::BindOutput(const std::string& name) {
  BindOutput(name, Value());
}

void IoBinding::ClearBoundInputs() {
  std::fill(impl_->inputs.begin(), impl_->inputs.end(), Value());
}

void IoBinding::ClearBoundOutputs() {
  impl_->outputs.clear();
  impl_->results.clear();
}

std::vector<std::string> IoBinding::GetOutputNames() const {
  std::vector<std::string> names;
  for (const auto& [index, value] : impl_->outputs) names.push_back(impl_->session->outputs[index].name);
  return names;
}

std::vector<Value> IoBinding::GetOutputValues() const {
  return impl_->results;
}

}  // namespace plimsoll
