#include "plimsoll/observe.h"

namespace plimsoll {

const char* verdict_name(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::kUndecided:
      return "undecided";
    case VerdictKind::kFlat:
      return "flat";
    case VerdictKind::kWarmingUp:
      return "warming up";
    case VerdictKind::kPlateau:
      return "plateau";
    case VerdictKind::kLeak:
      return "leak";
    case VerdictKind::kCache:
      return "cache";
  }
  return "unknown";
}

const char* cause_name(Cause cause) noexcept {
  switch (cause) {
    case Cause::kNone:
      return "none";
    case Cause::kLiveHeap:
      return "live heap";
    case Cause::kAllocatorRetention:
      return "allocator retention";
    case Cause::kMappedFiles:
      return "mapped files";
    case Cause::kAnonymousMaps:
      return "anonymous maps";
    case Cause::kThreadStacks:
      return "thread stacks";
    case Cause::kSharedMemory:
      return "shared memory";
    case Cause::kPageCache:
      return "page cache";
    case Cause::kSlab:
      return "slab";
    case Cause::kCopyOnWrite:
      return "copy-on-write";
    case Cause::kDescriptors:
      return "descriptors";
    case Cause::kProcesses:
      return "processes";
  }
  return "unknown";
}

}  // namespace plimsoll
