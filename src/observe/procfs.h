// One process's files in /proc. A process may end, exec or be replaced between any two reads: every function
// answers "nothing" then, and an open ProcessDirectory never speaks of another process with the same pid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/file_reader.h"

namespace plimsoll {

// /proc/PID/stat, as far as it is used. Addresses are the same for all without
// permission, and 0 without memory.
struct ProcessStat {
  int pid = 0;
  std::string name;  // any bytes, newlines and parentheses too
  char state = '?';  // R S D I running or waiting, T t stopped, Z X ended
  int parent = 0;
  uint64_t flags = 0;
  int64_t threads = 0;
  uint64_t start_ticks = 0;  // with the pid, the identity of a process
  uint64_t start_code = 0, start_stack = 0;

  bool is_kernel_thread() const noexcept;
  bool is_stopped() const noexcept { return state == 'T' || state == 't'; }
  // A leader that called pthread_exit is a zombie while its threads live on.
  bool leader_has_ended() const noexcept { return state == 'Z' || state == 'X'; }
  // It gives up its memory and its descriptors, one after the other, before it is a zombie.
  bool leader_is_leaving() const noexcept;
  // What changes with every exec and with nothing else. Without permission it is the same for all; a leader
  // that has ended, or a process in the middle of an exec, has none.
  std::optional<uint64_t> program_identity() const noexcept;
  bool has_ended() const noexcept { return leader_has_ended() && threads <= 1; }
};
std::optional<ProcessStat> parse_stat(std::string_view text);

// /proc/PID/status, as far as it is used, in bytes. Kernels before 4.5 do not tell the three kinds: -1.
struct ProcessStatus {
  int thread_group = 0;
  int64_t rss_bytes = 0;
  int64_t rss_anonymous_bytes = -1, rss_file_bytes = -1, rss_shared_memory_bytes = -1;
  int64_t swap_bytes = 0;
  int64_t page_table_bytes = 0;
  int64_t huge_tlb_bytes = 0;  // hugetlbfs: in no Rss
  int64_t threads = 0;
};
// In the innermost PID namespace that it is in, as it knows itself; empty: the kernel does not tell.
std::string_view own_number(std::string_view status);
ProcessStatus parse_status(std::string_view text);

// /proc/PID/smaps_rollup in bytes: the kernel's own sums over all mappings.
struct Rollup {
  int64_t rss_bytes = 0;
  int64_t pss_bytes = 0;
  int64_t pss_file_bytes = -1, pss_shared_memory_bytes = -1;  // kernels before 5.4 do not tell: -1
};
std::optional<Rollup> parse_rollup(std::string_view text);

// Whether the numbers of processes and threads beneath `proc_root` mean the same to our system calls.
bool are_numbers_ours(const std::string& proc_root);

// Whether an errno is about us (no descriptor, no memory), not about the process.
bool is_our_trouble(int error) noexcept;

// A descriptor of /proc/PID. Movable, closes itself.
class ProcessDirectory {
 public:
  ProcessDirectory() = default;
  ProcessDirectory(const std::string& proc_root, int pid);  // then check error()
  ProcessDirectory(ProcessDirectory&& other) noexcept;
  ProcessDirectory& operator=(ProcessDirectory&& other) noexcept;
  ~ProcessDirectory();

  int descriptor() const noexcept { return descriptor_; }  // -1: could not be opened
  int error() const noexcept { return error_; }            // errno of the opening

  // The leader's own file: that of the process sums over all threads, which takes milliseconds for thousands.
  std::optional<ProcessStat> stat(FileReader& reader) const;
  std::optional<ProcessStatus> status(FileReader& reader) const;
  // Open descriptors, with the living_prefix(); -1 without permission.
  int64_t count_descriptors(const std::string& prefix) const;
  std::vector<int> threads() const;
  // Who has mm's files and the cgroup: the leader, or another thread if the leader has left them behind.
  int living_thread(const ProcessStat& stat) const;
  // Where they are: empty, or "task/TID/".
  std::string living_prefix(const ProcessStat& stat) const;
  // The thread has begun to end, or is gone: it gives up memory, descriptors and cgroup one after the other,
  // and some of what was read just now may be torn.
  bool is_leaving(FileReader& reader, int thread) const;

 private:
  int descriptor_ = -1;
  int error_ = 0;
  std::string leader_stat_;  // "task/PID/stat"
};

}  // namespace plimsoll
