#include "plimsoll/io_binding.h"

#include <algorithm>

#include "runtime/session_impl.h"

namespace plimsoll {

IoBinding::IoBinding(Session& session) : impl_(std::make_unique<Impl>()) {
  impl_->session = session.impl_.get();
  impl_->inputs.resize(impl_->session->inputs.size());
  impl_->bound.resize(impl_->session->outputs.size());
  impl_->results.resize(impl_->session->outputs.size());
}
IoBinding::IoBinding(IoBinding&&) noexcept = default;
IoBinding& IoBinding::operator=(IoBinding&&) noexcept = default;
IoBinding::~IoBinding() = default;

void IoBinding::BindInput(const std::string& name, const Value& value) {
  impl_->inputs[impl_->session->input_index(name)] = value;
}

void IoBinding::BindOutput(const std::string& name, const Value& value) {
  const size_t index = impl_->session->output_index(name);
  if (std::find(impl_->order.begin(), impl_->order.end(), index) == impl_->order.end())
    impl_->order.push_back(index);
  impl_->bound[index] = value;
}

void IoBinding::BindOutput(const std::string& name) {
  BindOutput(name, Value());
}

void IoBinding::BindOutput(const std::string& name, const MemoryInfo& info) {
  check_cpu(info);
  BindOutput(name, Value());
}

Value IoBinding::GetBoundInput(const std::string& name) const {
  return impl_->inputs[impl_->session->input_index(name)];
}
Value IoBinding::GetBoundOutput(const std::string& name) const {
  return impl_->bound[impl_->session->output_index(name)];
}

void IoBinding::ClearBoundInputs() {
  std::fill(impl_->inputs.begin(), impl_->inputs.end(), Value());
}

void IoBinding::ClearBoundOutputs() {
  impl_->order.clear();
  std::fill(impl_->bound.begin(), impl_->bound.end(), Value());
  std::fill(impl_->results.begin(), impl_->results.end(), Value());
}

std::vector<std::string> IoBinding::GetOutputNames() const {
  std::vector<std::string> names;
  for (size_t index : impl_->order) names.push_back(impl_->session->outputs[index].name);
  return names;
}

std::vector<Value> IoBinding::GetOutputValues() const {
  std::vector<Value> values;
  for (size_t index : impl_->order) values.push_back(impl_->results[index]);
  return values;
}

}  // namespace plimsoll
