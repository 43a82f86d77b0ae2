// The processes of a job where no cgroup holds them together: found through /proc, by session, by descent and
// by a mark in their environment. What has left all three unseen is not found.
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
  void started(int pid);
  // Looks again. `deep` also reads the environment of every process of ours: slow, for the end.
  void scan(bool deep);
  // As of the last scan; zombies are not members.
  size_t processes() const noexcept { return members_.size(); }
  std::vector<int> pids() const;
  int64_t tasks() const noexcept;
  int64_t resident_bytes() const noexcept;  // shared pages are counted for each process
  double cpu_ms() const noexcept;           // of the members, and of the dead as last seen
  // Only to those that are still who they were.
  void signal(int signal) const noexcept;

 private:
  struct Member {
    int pid = 0, parent = 0, session = 0;
    int64_t start_time = 0, ticks = 0, threads = 0, resident_pages = 0;
  };
  static bool parse(std::string_view stat, Member& member) noexcept;
  bool carries_mark(int pid);
  bool was_member(const Member& process) const noexcept;

  std::string mark_;
  int first_ = 0;
  int64_t first_start_time_ = 0;
  std::vector<Member> members_;
  int64_t ticks_of_the_dead_ = 0;
  FileReader reader_;
};

}  // namespace plimsoll
