#include "isolate/process_tracker.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/descriptor.h"
#include "isolate/job_cgroup.h"

namespace plimsoll {

// "pid (name) state ppid pgrp session ..."; false for zombies too.
bool ProcessTracker::parse(std::string_view stat, Member& member) noexcept {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return false;
  const auto pid = parse_number(stat.substr(0, stat.find(' ')));
  stat.remove_prefix(name_end + 1);
  const std::string_view state = next_word(stat);
  if (!pid || state.empty() || state == "Z" || state == "X") return false;
  int64_t fields[25] = {};
  for (int field = 4; field <= 24; ++field) fields[field] = parse_number(next_word(stat)).value_or(0);
  member.pid = static_cast<int>(*pid);
  member.parent = static_cast<int>(fields[4]);
  member.session = static_cast<int>(fields[6]);
  member.ticks = fields[14] + fields[15];
  member.threads = fields[20];
  member.start_time = fields[22];
  member.resident_pages = fields[24];
  return true;
}

void ProcessTracker::started(int pid) {
  first_ = pid;
  first_start_time_ = process_start_time(pid).value_or(0);
  // No scan: the shortest jobs are over before it comes to them.
  Member first;
  const auto stat = reader_.read(fmt::format("/proc/{}/stat", pid).c_str());
  if (stat && parse(*stat, first)) members_ = {first};
}

bool ProcessTracker::was_member(const Member& process) const noexcept {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
    return member.pid == process.pid && member.start_time == process.start_time;
  });
}

bool ProcessTracker::carries_mark(int pid) {
  const auto environment = reader_.read(fmt::format("/proc/{}/environ", pid).c_str());
  if (!environment) return false;
  std::string_view rest = *environment;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == mark_) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

void ProcessTracker::scan(bool deep) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc"), ::closedir);
  if (!directory) return;
  std::vector<Member> all;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    Member process;
    const auto stat = reader_.read(fmt::format("/proc/{}/stat", entry->d_name).c_str());
    if (stat && parse(*stat, process)) all.push_back(process);
  }
  // A number that is used again by somebody else says nothing any more.
  const bool number_is_free = std::none_of(all.begin(), all.end(), [&](const Member& process) {
    return process.pid == first_ && process.start_time != first_start_time_;
  });
  std::unordered_set<int> found;
  for (const Member& process : all) {
    if ((number_is_free && process.session == first_) || was_member(process) ||
        (process.pid == first_ && process.start_time == first_start_time_) ||
        (deep && carries_mark(process.pid)))
      found.insert(process.pid);
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (const Member& process : all)
      if (found.count(process.parent) != 0 && found.insert(process.pid).second) grown = true;
  }
  for (const Member& member : members_) {
    const bool alive = std::any_of(all.begin(), all.end(), [&](const Member& process) {
      return process.pid == member.pid && process.start_time == member.start_time;
    });
    if (!alive) ticks_of_the_dead_ += member.ticks;
  }
  members_.clear();
  std::copy_if(all.begin(), all.end(), std::back_inserter(members_),
               [&](const Member& process) { return found.count(process.pid) != 0; });
}

std::vector<int> ProcessTracker::pids() const {
  std::vector<int> pids;
  for (const Member& member : members_) pids.push_back(member.pid);
  return pids;
}

int64_t ProcessTracker::tasks() const noexcept {
  int64_t sum = 0;
  for (const Member& member : members_) sum += member.threads;
  return sum;
}

int64_t ProcessTracker::resident_bytes() const noexcept {
  int64_t pages = 0;
  for (const Member& member : members_) pages += member.resident_pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

double ProcessTracker::cpu_ms() const noexcept {
  int64_t ticks = ticks_of_the_dead_;
  for (const Member& member : members_) ticks += member.ticks;
  return static_cast<double>(ticks) * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void ProcessTracker::signal(int signal) const noexcept {
  for (const Member& member : members_) {
    const Descriptor held(static_cast<int>(::syscall(SYS_pidfd_open, member.pid, 0)));
    if (!held || process_start_time(member.pid) != member.start_time) continue;
    ::syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0);
  }
}

}  // namespace plimsoll
