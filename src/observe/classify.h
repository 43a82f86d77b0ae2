// What a mapping is for, told from its shape, its neighbours and its flags; and how its resident pages
// divide.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "observe/smaps.h"

namespace plimsoll {

enum class MappingKind : uint8_t {
  kHeap,          // [heap]
  kArena,         // glibc's arenas of threads other than the first; those of the language's own allocator
  kMalloc,        // anonymous maps of the shape that malloc makes for large blocks: a guess
  kMainStack,     // [stack]
  kThreadStack,   // a guard and a writable map behind it
  kAnonymous,     // other private anonymous maps
  kFile,          // files, private or shared; the kernel's own pages ([vdso])
  kSharedMemory,  // shared anonymous, memfd, System V, /dev/shm and files on any tmpfs
};

// What the process runs on decides who makes its anonymous maps.
struct MappingContext {
  std::unordered_set<uint64_t> tmpfs_devices;  // major << 32 | minor
  bool stacks_are_marked = false;              // MAP_STACK shows in smaps, as "nh": since Linux 6.7
};

// One kind for each mapping; `vmas` are one process's, in the order of addresses.
std::vector<MappingKind> classify(const std::vector<Vma>& vmas, const NameTable& names,
                                  const MappingContext& context);

// Devices of all tmpfs mounts in the text of a mountinfo.
std::unordered_set<uint64_t> find_tmpfs_devices(std::string_view mountinfo);

// Whether a kernel of this release ("6.18.44-x") shows MAP_STACK in smaps.
bool marks_stacks(std::string_view release);

// A mapping's resident bytes, divided. `joint` is the part of `anonymous` that several processes map:
// after a fork, before one of them writes.
struct MappingBytes {
  int64_t anonymous = 0;  // private pages: of no file, or written copies
  int64_t file = 0;       // pages of the file (or of shared memory) itself
  int64_t joint = 0;
};
// By Pss, a page that n processes map counts as one n-th in each; by Rss it counts in full.
MappingBytes divide(const Vma& vma, bool proportional) noexcept;

}  // namespace plimsoll
