#include "runtime/checkpoint_state.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "runtime/ort_checkpoint.h"

namespace plimsoll {
namespace {

std::span<const std::byte> bytes_of(const Value& value) {
  return {static_cast<const std::byte*>(value.GetData()), value.GetByteCount()};
}

CheckpointContents read_any_checkpoint(std::span<const std::byte> file, const std::string& subject) {
  return is_ort_checkpoint(file) ? read_ort_checkpoint(file, subject) : read_checkpoint(file, subject);
}

}  // namespace

const CheckpointEntry* CheckpointState::Impl::find(const std::string& name) const {
  const auto found = std::find_if(contents.entries.begin(), contents.entries.end(),
                                  [&](const CheckpointEntry& entry) { return entry.name == name; });
  return found == contents.entries.end() ? nullptr : &*found;
}

CheckpointState::CheckpointState() : impl_(std::make_shared<Impl>()) {}

CheckpointState CheckpointState::LoadCheckpoint(const std::string& path) {
  CheckpointState state;
  state.impl_->file = std::make_shared<const MappedFile>(path);
  state.impl_->contents = read_any_checkpoint(state.impl_->file->bytes(), path);
  state.impl_->values.resize(state.impl_->contents.entries.size());
  return state;
}

CheckpointState CheckpointState::LoadCheckpointFromBuffer(std::span<const std::byte> buffer) {
  CheckpointState state;
  Impl& impl = *state.impl_;
  impl.contents = read_any_checkpoint(buffer, "buffer");
  for (CheckpointEntry& entry : impl.contents.entries) {
    impl.values.push_back(Value::CreateTensor(entry.type, entry.dims));
    if (!entry.bytes.empty())
      std::memcpy(impl.values.back().GetMutableData(), entry.bytes.data(), entry.bytes.size());
    entry.bytes = bytes_of(impl.values.back());
  }
  return state;
}

void CheckpointState::SaveCheckpoint(const CheckpointState& state, const std::string& path,
                                     bool include_optimizer_state) {
  CheckpointContents contents = state.impl_->contents;
  if (!include_optimizer_state) {
    std::erase_if(contents.entries, [](const CheckpointEntry& entry) {
      return entry.role == StateRole::kOptimizer || entry.role == StateRole::kGradient;
    });
  }
  write_checkpoint(path, contents);
}

void CheckpointState::AddProperty(const std::string& name, const Property& value) {
  impl_->contents.properties[name] = value;
}

bool CheckpointState::HasProperty(const std::string& name) const {
  return impl_->contents.properties.count(name) > 0;
}

Property CheckpointState::GetProperty(const std::string& name) const {
  const auto found = impl_->contents.properties.find(name);
  if (found == impl_->contents.properties.end())
    fail(ErrorCode::kInvalidArgument, "checkpoint: there is no property '{}'", name);
  return found->second;
}

void CheckpointState::UpdateParameter(const std::string& name, const Value& value) {
  const auto* known = impl_->find(name);
  if (known == nullptr) {
    impl_->contents.entries.push_back(
        {name, StateRole::kParameter, value.GetElementType(), value.GetShape(), bytes_of(value)});
    impl_->values.push_back(value);
    return;
  }
  const auto at = static_cast<size_t>(known - impl_->contents.entries.data());
  CheckpointEntry& entry = impl_->contents.entries[at];
  if (entry.type != value.GetElementType() || entry.dims != value.GetShape())
    fail(ErrorCode::kInvalidArgument, "checkpoint: parameter '{}': expected {} elements of {}, found {}",
         name, entry.bytes.size(), element_type_name(entry.type), value.GetTypeInfo());
  entry.bytes = bytes_of(value);
  impl_->values[at] = value;
}

Value CheckpointState::GetParameter(const std::string& name) const {
  const CheckpointEntry* entry = impl_->find(name);
  if (entry == nullptr) fail(ErrorCode::kInvalidArgument, "checkpoint: there is no parameter '{}'", name);
  Value value = Value::CreateTensor(entry->type, entry->dims);
  if (!entry->bytes.empty()) std::memcpy(value.GetMutableData(), entry->bytes.data(), entry->bytes.size());
  return value;
}

std::vector<std::string> CheckpointState::ParameterNames() const {
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : impl_->contents.entries) {
    if (entry.role == StateRole::kParameter) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> CheckpointState::TensorNames() const {
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : impl_->contents.entries) names.push_back(entry.name);
  return names;
}

std::vector<std::string> CheckpointState::PropertyNames() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : impl_->contents.properties) names.push_back(name);
  return names;
}

}  // namespace plimsoll
