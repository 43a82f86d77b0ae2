// The processes of a job where no cgroup holds them together, found through /proc. Within a PID namespace, or
// beneath a keeper, they are the descendants of its first process, and nobody leaves them. Otherwise they are
// found by session, by descent and by a mark in their environment; what has left all three unseen is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/file_reader.h"

namespace plimsoll {

class ProcessTracker {
 public:
  // `mark` is a "NAME=VALUE" that the job's environment carries.
  explicit ProcessTracker(std::string mark) : mark_(std::move(mark)) {}

  const std::string& mark() const noexcept { return mark_; }
  // The first process is an init or a keeper of ours: no member itself. `init`: everybody ends with it.
  void beneath(bool init) noexcept { beneath_ = true, init_ = init; }
  bool is_beneath() const noexcept { return beneath_; }
  // Above 0: memory_bytes() also counts files in memory, and shared pages once.
  void watch_limit(int64_t limit_bytes, bool own_shared_memory) noexcept {
    limit_bytes_ = limit_bytes, own_shared_memory_ = own_shared_memory;
  }
  void started(int pid);
  // Only its session and descendants are looked for, though it may have ended: nobody else gets the number
  // while the session lives.
  void adopt(int pid) noexcept;
  // Looks again. `deep` also reads the environment of every process of ours: slow, for the end.
  void scan(bool deep);
  // As of the last scan; zombies are not members.
  size_t processes() const noexcept { return members_.size(); }
  std::vector<int> pids() const;
  int64_t tasks() const noexcept;
  // Shared pages are counted for each process, unless the sum is above the limit: then they are counted once.
  int64_t memory_bytes() const noexcept { return memory_bytes_; }
  double cpu_ms() const noexcept;  // of the members, and of the dead as last seen
  // Only to those that are still who they were. KILL: to the init, if there is one.
  void signal(int signal) const noexcept;
  bool first_is_alive() const noexcept;

 private:
  struct Member {
    int pid = 0, parent = 0, session = 0;
    int64_t start_time = 0, ticks = 0, threads = 0, resident_pages = 0;
  };
  static bool parse(std::string_view stat, Member& member) noexcept;
  bool carries_mark(int pid);
  bool was_member(const Member& process) const noexcept;
  void find_members(const std::vector<Member>& all, bool deep);
  void measure();
  int64_t files_in_memory();
  static void send(int pid, int64_t start_time, int signal) noexcept;

  std::string mark_;
  int first_ = 0;
  int64_t first_start_time_ = 0;
  bool beneath_ = false, init_ = false, own_shared_memory_ = false;
  int64_t limit_bytes_ = 0, memory_bytes_ = 0;
  std::vector<Member> members_;
  int64_t ticks_of_the_dead_ = 0;
  FileReader reader_;
};

}  // namespace plimsoll
