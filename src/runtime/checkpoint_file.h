// Checkpoints as files. All numbers are little-endian:
//   "PLIMSOLL", version, bytes and checksum of the header; the header: properties and tensors, each with its
//   place, bytes and checksum; the tensors' bytes, each at a multiple of 64.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/training.h"

namespace plimsoll {

enum class StateRole : uint8_t { kParameter = 0, kGradient = 1, kOptimizer = 2, kStatistic = 3 };

struct CheckpointEntry {
  std::string name;
  StateRole role = StateRole::kParameter;
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;
};
struct CheckpointContents {
  std::map<std::string, Property> properties;
  std::vector<CheckpointEntry> entries;
};

// Written beside, synced, renamed, and the folder synced. Throws kIo; what was at `path` is then still there.
void write_checkpoint(const std::string& path, const CheckpointContents& contents);
// The entries' bytes are inside `file`. Throws kInvalidModel naming `subject` and what is wrong: every byte
// is checked.
CheckpointContents read_checkpoint(std::span<const std::byte> file, const std::string& subject);

}  // namespace plimsoll
