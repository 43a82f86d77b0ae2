#include "isolate/enclosure.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/fail.h"
#include "isolate/group.h"
#include "isolate/mount_table.h"
#include "isolate/sandbox_kernel.h"
#include "isolate/sandbox_syscall.h"
#include "observe/procfs.h"

namespace plimsoll {
namespace {

using sandbox::raw_syscall;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr int64_t kQueueBytes = 16 << 10, kSemaphoreBytes = 1 << 10;

struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};

int write_setting(const char* path, const std::string& value) noexcept {
  const long file = raw_syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return static_cast<int>(file);
  const long written = raw_syscall(SYS_write, file, value.data(), value.size());
  raw_syscall(SYS_close, file);
  return written < 0 ? static_cast<int>(written) : 0;
}

std::atomic<bool> cgroups_stay_open{false};

// Processes and threads of this user, as RLIMIT_NPROC counts them.
int64_t tasks_of_user() {
  int64_t tasks = 0;
  FileReader reader;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir("/proc"), ::closedir);
  while (const dirent* entry = list ? ::readdir(list.get()) : nullptr) {
    struct stat process = {};
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
        ::fstatat(::dirfd(list.get()), entry->d_name, &process, 0) != 0 || process.st_uid != ::geteuid())
      continue;
    const auto stat =
        parse_stat(reader.read(fmt::format("/proc/{}/stat", entry->d_name).c_str()).value_or(""));
    if (stat) tasks += stat->threads;
  }
  return tasks;
}

}  // namespace

Enclosure::Enclosure(const EnclosureOptions& options) : options_(options) {
  if (options.keeper) open_status_pipe(true);
  if (options.keeper) return;
  if (options.user) {
    clone_flags_ |= CLONE_NEWUSER;
    as_root_ = {fmt::format("0 {} 1\n", ::geteuid()), fmt::format("0 {} 1\n", ::getegid())};
    as_self_ = {fmt::format("{} 0 1\n", ::geteuid()), fmt::format("{} 0 1\n", ::getegid())};
  }
  if (options.processes) {
    clone_flags_ |= CLONE_NEWPID | CLONE_NEWNS;
    open_status_pipe(false);
  }
  if (options.read_only_cgroups) {
    clone_flags_ |= CLONE_NEWNS;
    for (const MountEntry& mount : *mount_table()) {
      if (mount.type == "cgroup" || mount.type == "cgroup2") cgroup_mounts_.push_back(mount.point);
    }
  }
  if (options.memory_bytes > 0) {
    clone_flags_ |= CLONE_NEWIPC | CLONE_NEWNS;
    const int64_t bytes = options.memory_bytes, page = ::sysconf(_SC_PAGESIZE);
    shared_memory_ = fmt::format("mode=1777,size={}", bytes);
    const int64_t semaphores = std::max<int64_t>(bytes / kSemaphoreBytes, 256);
    settings_ = {
        {"/proc/sys/kernel/shmall", fmt::format("{}", bytes / page)},
        {"/proc/sys/kernel/shmmax", fmt::format("{}", bytes)},
        {"/proc/sys/kernel/msgmni", fmt::format("{}", std::max<int64_t>(bytes / 8 / kQueueBytes, 1))},
        {"/proc/sys/kernel/sem", fmt::format("250 {} 100 {}", semaphores, semaphores / 16)}};
  }
}

SandboxFailure Enclosure::close_cgroups() const noexcept {
  const MountAttributes closed{1, 0, MS_PRIVATE, 0};  // MOUNT_ATTR_RDONLY; nobody outside is to see it
  for (const std::string& path : cgroup_mounts_) {
    const long result = raw_syscall(SYS_mount_setattr, AT_FDCWD, path.c_str(), 0, &closed, sizeof(closed));
    if (result < 0) return {static_cast<int>(-result), "cgroups read-only", path.c_str()};
  }
  return {};
}

void Enclosure::bound_memory() const noexcept {
  if (raw_syscall(SYS_mount, "tmpfs", kSharedMemory, "tmpfs", MS_NOSUID | MS_NODEV, shared_memory_.c_str()) <
      0)
    lacks_shared_memory_ = true;
  for (const auto& [path, value] : settings_) {
    if (write_setting(path, value) < 0) lacks_system_v_ = true;
  }
}

// In the job itself. In a user namespace of its own within the first it is its user again, and may not undo
// what was mounted.
SandboxFailure Enclosure::enter_as_job() const noexcept {
  long result = 0;
  if (options_.user) {
    result = raw_syscall(SYS_unshare, CLONE_NEWUSER);
    if (result == 0) result = sandbox::apply_identity_map(as_self_);
    if (result < 0) return {static_cast<int>(-result), "its own user", ""};
  }
  raw_syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (options_.processes || options_.keeper) result = raw_syscall(SYS_setsid);
  if (result < 0) return {static_cast<int>(-result), "session", ""};
  if (options_.tasks > 0) {
    const auto tasks = static_cast<rlim_t>(options_.tasks);
    const rlimit limit{tasks, tasks};
    result = raw_syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &limit, nullptr);
    if (result < 0) return {static_cast<int>(-result), "number of processes", ""};
  }
  return {};
}

SandboxFailure Enclosure::apply() const noexcept {
  int result = 0;
  if (options_.keeper) {
    result = static_cast<int>(raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    if (result == 0) result = sandbox::become_init(init_, &init_word_, status_descriptor(), false);
    return result < 0 ? SandboxFailure{-result, "keeper", ""} : enter_as_job();
  }
  if (options_.user) result = sandbox::apply_identity_map(as_root_);
  if (result < 0) return {-result, "user namespace", ""};
  if (const SandboxFailure failure = close_cgroups(); failure.error != 0) return failure;
  // Where parts of /proc are hidden, as in containers, no other may be mounted: then it shows everybody's.
  if (options_.processes &&
      raw_syscall(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0)
    lacks_proc_ = true;
  if (options_.memory_bytes > 0) bound_memory();
  if (options_.processes) result = sandbox::become_init(init_, &init_word_, status_descriptor(), true);
  if (result < 0) return {-result, "PID namespace", ""};
  return enter_as_job();
}

void remember_open_cgroups() noexcept {
  cgroups_stay_open = true;
}

std::unique_ptr<Enclosure> enclosure_for(const Command& command, const Limits& limits, const Group& group) {
  if (command.sandbox.level != SandboxLevel::kNone) return nullptr;
  EnclosureOptions options;
  options.wanted_bare = command.bare;
  if (command.bare) {
    options.keeper = group.is_scattered();
  } else if (!group.is_scattered() && ::geteuid() == 0) {
    options.read_only_cgroups = !cgroups_stay_open;
  } else if (const EnclosureSupport& support = enclosure_support(); support.namespaces) {
    options.user = support.user;
    options.processes = options.read_only_cgroups = true;
    if (!group.limits_memory()) options.memory_bytes = limits.memory_bytes;
    if (!group.limits_processes() && support.counts_tasks) options.tasks = limits.processes;
  } else {
    options.keeper = group.is_scattered();
  }
  if (!options.keeper && !options.processes && !options.read_only_cgroups) return nullptr;
  // Outside a user namespace the kernel counts all that the user has; root it does not count at all.
  if (options.keeper && limits.processes > 0) options.tasks = tasks_of_user() + limits.processes + 1;
  return std::make_unique<Enclosure>(options);
}

}  // namespace plimsoll
