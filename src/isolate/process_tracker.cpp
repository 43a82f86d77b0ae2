#include "isolate/process_tracker.h"

#include <dirent.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/descriptor.h"
#include "isolate/job_cgroup.h"
#include "observe/procfs.h"

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
  if (beneath_)
    scan(false);
  else
    measure();
}

void ProcessTracker::adopt(int pid) noexcept {
  first_ = pid;
  first_start_time_ = process_start_time(pid).value_or(0);
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
  find_members(all, deep);
  measure();
}

void ProcessTracker::find_members(const std::vector<Member>& all, bool deep) {
  // A number that is used again by somebody else says nothing any more.
  const bool number_is_free = std::none_of(all.begin(), all.end(), [&](const Member& process) {
    return process.pid == first_ && process.start_time != first_start_time_;
  });
  std::unordered_set<int> found;
  for (const Member& process : all) {
    if ((number_is_free && process.session == first_) || was_member(process) ||
        (process.pid == first_ && process.start_time == first_start_time_) ||
        (deep && !init_ && carries_mark(process.pid)))
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
  if (beneath_) found.erase(first_);
  std::copy_if(all.begin(), all.end(), std::back_inserter(members_),
               [&](const Member& process) { return found.count(process.pid) != 0; });
}

bool ProcessTracker::first_is_alive() const noexcept {
  FileReader reader;
  Member first;
  const auto stat = reader.read(fmt::format("/proc/{}/stat", first_).c_str());
  return stat && parse(*stat, first) && first.start_time == first_start_time_;
}

// Files of memory that a member has open, each once: memfd, and what lies in a /dev/shm. What is open nowhere
// any more is seen only in a /dev/shm of the job's own.
int64_t ProcessTracker::files_in_memory() {
  std::set<std::pair<dev_t, ino_t>> seen;
  int64_t bytes = 0;
  struct statvfs room = {};
  const std::string own = fmt::format("/proc/{}/root/dev/shm", first_);
  struct stat own_stat = {};
  const bool has_own =
      own_shared_memory_ && ::statvfs(own.c_str(), &room) == 0 && ::stat(own.c_str(), &own_stat) == 0;
  if (has_own) bytes += static_cast<int64_t>((room.f_blocks - room.f_bfree) * room.f_frsize);
  for (const Member& member : members_) {
    const std::string path = fmt::format("/proc/{}/fd", member.pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(path.c_str()), ::closedir);
    while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
      char target[32];
      const ssize_t length = ::readlinkat(::dirfd(list.get()), entry->d_name, target, sizeof(target));
      const std::string_view name(target, static_cast<size_t>(std::max<ssize_t>(length, 0)));
      if (!name.starts_with("/memfd:") && !name.starts_with("/dev/shm/")) continue;
      struct stat file = {};
      if (::fstatat(::dirfd(list.get()), entry->d_name, &file, 0) != 0) continue;
      if (has_own && file.st_dev == own_stat.st_dev) continue;
      if (seen.insert({file.st_dev, file.st_ino}).second) bytes += int64_t{file.st_blocks} * 512;
    }
  }
  return bytes;
}

void ProcessTracker::measure() {
  int64_t pages = 0;
  for (const Member& member : members_) pages += member.resident_pages;
  memory_bytes_ = pages * ::sysconf(_SC_PAGESIZE);
  if (limit_bytes_ == 0) return;
  const int64_t files = files_in_memory();
  if (memory_bytes_ + files <= limit_bytes_) {
    memory_bytes_ += files;
    return;
  }
  int64_t own = 0, shared = 0;
  for (const Member& member : members_) {
    const auto rollup =
        parse_rollup(reader_.read(fmt::format("/proc/{}/smaps_rollup", member.pid).c_str()).value_or(""));
    if (!rollup || rollup->pss_shared_memory_bytes < 0) {  // not ours to read, or ended meanwhile
      own += member.resident_pages * ::sysconf(_SC_PAGESIZE);
      continue;
    }
    own += rollup->pss_bytes - rollup->pss_shared_memory_bytes;
    shared += rollup->pss_shared_memory_bytes;
  }
  memory_bytes_ = own + std::max(shared, files);
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

double ProcessTracker::cpu_ms() const noexcept {
  int64_t ticks = ticks_of_the_dead_;
  for (const Member& member : members_) ticks += member.ticks;
  return static_cast<double>(ticks) * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void ProcessTracker::send(int pid, int64_t start_time, int signal) noexcept {
  const Descriptor held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!held || process_start_time(pid) != start_time) return;
  ::syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0);
}

void ProcessTracker::signal(int signal) const noexcept {
  if (init_ && signal == SIGKILL) return send(first_, first_start_time_, signal);
  for (const Member& member : members_) send(member.pid, member.start_time, signal);
}

}  // namespace plimsoll
