// The container's side of an account, from the memory controller of version 1 or 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/cgroup.h"
#include "plimsoll/observe.h"

namespace plimsoll {

// What version 1 does not tell apart, estimated from the processes in the cgroup.
struct KernelShare {
  int64_t page_table_bytes = 0;
  int64_t threads = 0;
  int64_t processes = 0;
  bool complete = true;  // false: there were too many processes to ask them all
};

// Figures that only an account needs.
struct ContainerReturns {
  int64_t file_lists_bytes = 0;  // page cache that reclaim could take
};

// Follows the memory cgroup of one process, also when the process is moved. One thread at a time.
class ContainerReader {
 public:
  explicit ContainerReader(CgroupRoots roots) : roots_(std::move(roots)) {}

  // `thread` is one that lives: version 1 shows the root for a leader that has ended before its threads.
  // Nothing if there is no memory cgroup that we can see, or for the root of version 2, which has no usage.
  // What version 1 does not tell is taken from `watched`, the tree's figures of this moment, and from the
  // other processes of the cgroup, which are asked again where `estimate` says so.
  std::optional<ContainerView> read(int thread, const ProcessView& watched, bool estimate);
  ContainerReturns returns() const;
  std::vector<int> pids() const;                                // of the processes in the cgroup itself
  const KernelShare& share() const noexcept { return share_; }  // when it was last asked

 private:
  void follow(int thread);
  void read_version_1(const ProcessView& watched, ContainerView& view) const;
  void read_version_2(ContainerView& view) const;
  double read_pressure();
  int64_t read_unused_names();

  CgroupRoots roots_;
  FileReader reader_;
  std::string membership_;  // /proc/PID/cgroup when the cgroup was found
  std::optional<MemoryCgroup> cgroup_;
  std::optional<std::string> pressure_file_;
  KernelShare share_, others_;  // others_: without the tree
  int64_t stack_bytes_ = 0;     // of one thread, in the kernel
};

// What the kernel's stack of one thread takes.
int64_t kernel_stack_bytes_per_thread(const std::string& proc_root, FileReader& reader);
KernelShare estimate_kernel_share(const CgroupPlace& place, const std::string& proc_root, FileReader& reader);

}  // namespace plimsoll
