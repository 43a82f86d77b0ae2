#include "isolate/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "isolate/job_cgroup.h"
#include "isolate/sandbox.h"
#include "isolate/surroundings.h"
#include "plimsoll/isolate.h"

namespace plimsoll {
namespace {

// The owner may live in another process namespace, where its number means nothing to us: its lock tells.
bool is_orphaned(const char* name, int directory) {
  const auto owner = parse_job_cgroup_name(name);
  if (!owner) return false;
  if (process_start_time(owner->pid) == owner->start_time) return false;
  return ::flock(directory, LOCK_EX | LOCK_NB) == 0;
}

bool remove_leftover(int parent, const char* name, int version) {
  const Descriptor directory(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!directory || !is_orphaned(name, directory.get())) return false;
  constexpr int kAttempts = 200;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (version == 2) write_file_at(directory.get(), "cgroup.kill", "1");
    if (signal_members(directory.get(), SIGKILL) == 0) {
      clear_below(directory.get());
      write_file_at(directory.get(), "memory.force_empty", "0");
      if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt < 20 ? 1 : 10));
  }
  return false;
}

}  // namespace

int remove_leftover_cgroups(const CgroupPlace& place) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(place.directory.c_str()), ::closedir);
  if (!directory) return 0;
  int removed = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_type == DT_DIR && parse_job_cgroup_name(entry->d_name) &&
        remove_leftover(::dirfd(directory.get()), entry->d_name, place.version))
      ++removed;
  }
  return removed;
}

void CleanUpLeftovers() {
  const auto around = surroundings();
  for (const auto* place : {&around->memory, &around->unified, &around->pids, &around->cpuacct}) {
    if (*place) remove_leftover_cgroups(**place);
  }
  remove_sandbox_leftovers();
}

void clean_up_once() {
  static std::atomic<int> done_by{0};
  const int pid = ::getpid();
  if (done_by.exchange(pid) != pid) CleanUpLeftovers();
}

}  // namespace plimsoll
