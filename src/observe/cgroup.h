// Control groups: where a process is, in version 1, version 2 or both (hybrid), and what the memory
// controller says about it. Reads only; src/isolate writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/file_reader.h"

namespace plimsoll {

// Where /proc and the mounted hierarchies are. Tests put a recorded tree in their place: then every mount
// point of proc's self/mountinfo is looked for beneath `tree`.
struct CgroupRoots {
  std::string proc = "/proc";
  std::string tree;
};

// A process's place in one hierarchy.
struct CgroupPlace {
  int version = 0;  // 1 or 2
  std::vector<std::string>
      controllers;          // of the hierarchy; for version 2 what cgroup.controllers lists there
  std::string path;         // as /proc/PID/cgroup has it
  std::string directory;    // where its files are
  std::string mount_point;  // the highest directory that can be seen of this hierarchy

  bool has(std::string_view controller) const noexcept;
};

// All hierarchies that `pid` (0: ourselves) is in and that are mounted where we can see its place in them.
// Empty if there is no such process.
std::vector<CgroupPlace> cgroup_places(int pid, const CgroupRoots& roots = {});
// The one that has `controller`: version 1 if it is mounted there, otherwise version 2.
std::optional<CgroupPlace> find_controller(const std::vector<CgroupPlace>& places,
                                           std::string_view controller);
// The unified (version 2) tree, whether or not it has any controller.
std::optional<CgroupPlace> find_unified(const std::vector<CgroupPlace>& places);

struct MemoryEvents {
  // Processes in it that were killed for want of memory, at whosever limit. Version 2 counts those below too.
  int64_t oom_kills = 0;
  // Times that a charge met this cgroup's own limit; most were answered by reclaiming.
  int64_t limit_failures = 0;
};

// The memory controller's files of one cgroup. Holds a descriptor of the directory and a buffer; movable; one
// thread at a time. A cgroup that is removed meanwhile answers nothing.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(CgroupPlace place);
  // Nothing if the process has no memory cgroup that we can see.
  static std::optional<MemoryCgroup> of_process(int pid, const CgroupRoots& roots = {});
  MemoryCgroup(MemoryCgroup&& other) noexcept;
  MemoryCgroup& operator=(MemoryCgroup&& other) noexcept;
  ~MemoryCgroup();

  const CgroupPlace& place() const noexcept { return place_; }
  int version() const noexcept { return place_.version; }
  int directory() const noexcept { return directory_; }  // a descriptor (O_PATH); -1: cannot be opened

  // Nothing where the kernel does not tell: version 2 has no usage for the root, and no peak before 5.19.
  std::optional<int64_t> usage_bytes() const;
  std::optional<int64_t> peak_bytes() const;
  // The tightest on the way up, as far as we can see; nothing if there is none.
  std::optional<int64_t> limit_bytes() const;
  std::optional<int64_t> swap_bytes() const;
  MemoryEvents events() const;
  // memory.stat as it is; look values up with number_of(). Valid until the next call of anything here.
  // Version 1 has two sets: those named total_... include the cgroups below, as version 2's all do.
  std::string_view stat() const;
  // Any other file of the cgroup ("cgroup.procs", "memory.pressure"); empty if absent.
  std::string_view file(const char* name) const;

 private:
  std::optional<int64_t> number(const char* version_1, const char* version_2) const;

  CgroupPlace place_;
  int directory_ = -1;
  mutable FileReader reader_;
};

}  // namespace plimsoll
