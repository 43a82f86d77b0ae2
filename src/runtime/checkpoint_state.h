// What is behind a CheckpointState.
#pragma once

#include <memory>

#include "base/mapped_file.h"
#include "runtime/checkpoint_file.h"

namespace plimsoll {

struct CheckpointState::Impl {
  CheckpointContents contents;
  std::shared_ptr<const MappedFile> file;  // entries may be bytes of this
  std::vector<Value> values;               // by entry: those that are in memory keep it
  const CheckpointEntry* find(const std::string& name) const;
};

}  // namespace plimsoll
