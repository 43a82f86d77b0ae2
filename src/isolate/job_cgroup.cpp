#include "isolate/job_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "observe/procfs.h"

namespace plimsoll {

std::optional<JobCgroup> JobCgroup::create(const CgroupPlace& parent, const std::string& name, int& error) {
  JobCgroup cgroup;
  cgroup.version_ = parent.version;
  cgroup.path_ = parent.directory + "/" + name;
  if (::mkdir(cgroup.path_.c_str(), 0755) != 0) {
    error = errno;
    return std::nullopt;
  }
  cgroup.directory_.reset(::open(cgroup.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup.directory_) {
    error = errno;
    ::rmdir(cgroup.path_.c_str());
    return std::nullopt;
  }
  ::flock(cgroup.directory_.get(), LOCK_EX | LOCK_NB);
  return cgroup;
}

JobCgroup::~JobCgroup() {
  constexpr int kAttempts = 50;  // the dead leave it a moment after they were waited for
  for (int attempt = 0; remove() == EBUSY && attempt < kAttempts; ++attempt) ::usleep(1000);
}

int JobCgroup::write(const char* file, std::string_view text) const noexcept {
  return write_file_at(directory_.get(), file, text);
}

int write_file_at(int directory, const char* path, std::string_view text) noexcept {
  const Descriptor opened(::openat(directory, path, O_WRONLY | O_CLOEXEC));
  if (!opened) return errno;
  return ::write(opened.get(), text.data(), text.size()) < 0 ? errno : 0;
}

bool JobCgroup::has(const char* file) const noexcept {
  return ::faccessat(directory_.get(), file, F_OK, 0) == 0;
}

Descriptor JobCgroup::open(const char* file, int flags) const noexcept {
  return Descriptor(::openat(directory_.get(), file, flags | O_CLOEXEC));
}

int JobCgroup::remove() noexcept {
  if (!directory_) return 0;
  int error = ::rmdir(path_.c_str()) == 0 ? 0 : errno;
  if (error == EBUSY) {
    clear_below(directory_.get());
    error = ::rmdir(path_.c_str()) == 0 ? 0 : errno;
  }
  if (error != 0 && error != ENOENT) return error;
  directory_.reset();
  return 0;
}

namespace {

std::optional<ProcessStat> stat_of(int pid) noexcept {
  FileReader reader;
  char path[32];
  *fmt::format_to(path, "/proc/{}/stat", pid) = '\0';
  return parse_stat(reader.read(path).value_or(""));
}

}  // namespace

std::optional<int64_t> process_start_time(int pid) noexcept {
  const auto stat = stat_of(pid);
  return stat ? std::optional(static_cast<int64_t>(stat->start_ticks)) : std::nullopt;
}

std::optional<int64_t> process_parent(int pid) noexcept {
  const auto stat = stat_of(pid);
  return stat ? std::optional<int64_t>(stat->parent) : std::nullopt;
}

std::string job_cgroup_name() {
  static std::atomic<int64_t> count{0};
  thread_local CgroupOwner self;
  const int pid = ::getpid();
  if (self.pid != pid) self = {pid, process_start_time(pid).value_or(0)};  // a child of fork() is another
  return fmt::format("plimsoll-{}-{}-{}", self.pid, self.start_time, ++count);
}

std::optional<CgroupOwner> parse_job_cgroup_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "plimsoll-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t first = name.find('-'), second = name.find('-', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto pid = parse_number(name.substr(0, first));
  const auto start = parse_number(name.substr(first + 1, second - first - 1));
  const auto count = parse_number(name.substr(second + 1));
  if (!pid || !start || !count || *pid <= 0 || *pid > INT32_MAX) return std::nullopt;
  return CgroupOwner{static_cast<int>(*pid), *start};
}

std::vector<int> parse_members(std::string_view text) {
  std::vector<int> members;
  while (const auto line = next_line(text)) {
    if (const auto pid = parse_number(*line); pid && *pid > 0) members.push_back(static_cast<int>(*pid));
  }
  return members;
}

namespace {

// Calls visit(descriptor, name) for each cgroup directly below.
template <typename Visit>
void for_each_below(int directory, Visit visit) {
  Descriptor again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(again.get()), ::closedir);
  if (!list) return;
  const int opened = again.release();  // the list closes it
  while (const dirent* entry = ::readdir(list.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const Descriptor child(::openat(opened, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (child) visit(child.get(), entry->d_name);
  }
}

}  // namespace

std::vector<int> members_of(int directory) {
  FileReader reader;
  std::vector<int> members = parse_members(reader.read_at(directory, "cgroup.procs").value_or(""));
  for_each_below(directory, [&](int child, const char*) {
    const std::vector<int> below = members_of(child);
    members.insert(members.end(), below.begin(), below.end());
  });
  return members;
}

int64_t oom_kills_below(int directory) {
  int64_t kills = 0;
  for_each_below(directory, [&](int child, const char*) {
    FileReader reader;
    kills += number_of(reader.read_at(child, "memory.oom_control").value_or(""), "oom_kill").value_or(0);
    kills += oom_kills_below(child);
  });
  return kills;
}

int signal_members(int directory, int signal) noexcept {
  const std::vector<int> before = members_of(directory);
  if (before.empty()) return 0;
  std::vector<Descriptor> held;
  held.reserve(before.size());
  for (const int pid : before) held.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::vector<int> after = members_of(directory);
  std::sort(after.begin(), after.end());
  for (size_t i = 0; i < before.size(); ++i) {
    if (!std::binary_search(after.begin(), after.end(), before[i])) continue;
    if (held[i])
      ::syscall(SYS_pidfd_send_signal, held[i].get(), signal, nullptr, 0);
    else
      ::kill(before[i], signal);  // no descriptor left for it
  }
  return static_cast<int>(after.size());
}

void clear_below(int directory) noexcept {
  for_each_below(directory, [&](int child, const char* name) {
    signal_members(child, SIGKILL);
    clear_below(child);
    ::unlinkat(directory, name, AT_REMOVEDIR);
  });
}

}  // namespace plimsoll
