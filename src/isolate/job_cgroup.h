// One cgroup that belongs to one job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "observe/cgroup.h"

namespace plimsoll {

// Owns the directory: it is removed with the object, if it is empty by then. Movable.
class JobCgroup {
 public:
  // Made beneath `parent`. Locked as long as we live: whoever can lock it knows that its owner is dead. With
  // nothing, `error` is the errno.
  static std::optional<JobCgroup> create(const CgroupPlace& parent, const std::string& name, int& error);
  JobCgroup(JobCgroup&&) noexcept = default;
  JobCgroup& operator=(JobCgroup&&) noexcept = default;
  ~JobCgroup();

  int version() const noexcept { return version_; }
  const std::string& directory() const noexcept { return path_; }
  int descriptor() const noexcept { return directory_.get(); }
  // 0 or the errno.
  int write(const char* file, std::string_view text) const noexcept;
  bool has(const char* file) const noexcept;
  Descriptor open(const char* file, int flags) const noexcept;
  // 0 or the errno: EBUSY as long as a process is in it.
  int remove() noexcept;
  // Forgets it without removing it.
  void abandon() noexcept { directory_.reset(); }

 private:
  JobCgroup() = default;

  int version_ = 0;
  std::string path_;
  Descriptor directory_;
};

// "plimsoll-<pid>-<start time of that process>-<n>": who owns it, and that pids are used again does not
// matter.
std::string job_cgroup_name();
struct CgroupOwner {
  int pid = 0;
  int64_t start_time = 0;
};
// Nothing: the name is not one of ours.
std::optional<CgroupOwner> parse_job_cgroup_name(std::string_view name) noexcept;
// In clock ticks since boot, from /proc/PID/stat; nothing: there is no such process.
std::optional<int64_t> process_start_time(int pid) noexcept;
std::optional<int64_t> process_parent(int pid) noexcept;

// `path` is taken from the directory, or AT_FDCWD. 0 or the errno.
int write_file_at(int directory, const char* path, std::string_view text) noexcept;

// The processes that a cgroup.procs file lists.
std::vector<int> parse_members(std::string_view text);
// Of a cgroup and all below it.
std::vector<int> members_of(int directory);
// Version 1: processes in cgroups below this one that were killed for want of memory.
int64_t oom_kills_below(int directory);
// Sends `signal` to those that are members before and after we hold them, so that no pid that was used again
// is hit; returns how many there were.
int signal_members(int directory, int signal) noexcept;
// Kills what is in cgroups that the job made below its own (it may be one of us that was killed), and removes
// them.
void clear_below(int directory) noexcept;

}  // namespace plimsoll
