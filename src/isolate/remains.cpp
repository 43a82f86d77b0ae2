#include "isolate/remains.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "isolate/file_users.h"
#include "observe/file_reader.h"

namespace plimsoll {
namespace {

constexpr SystemVKind kKinds[] = {SystemVKind::kMemory, SystemVKind::kSemaphores, SystemVKind::kQueue};
constexpr const char* kLists[] = {"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"};
constexpr const char* kNames[] = {"System V memory", "semaphores", "message queue"};
constexpr int kMostFiles = 20000;  // of a file system in memory are looked at

// How many there are, from one system call; -1: unknown.
int count(SystemVKind kind) {
  switch (kind) {
    case SystemVKind::kMemory: {
      shm_info info = {};
      return ::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info)) < 0 ? -1 : info.used_ids;
    }
    case SystemVKind::kSemaphores: {
      seminfo info = {};
      return ::semctl(0, 0, SEM_INFO, &info) < 0 ? -1 : info.semusz;
    }
    case SystemVKind::kQueue: {
      msginfo info = {};
      return ::msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&info)) < 0 ? -1 : info.msgpool;
    }
  }
  return -1;
}

bool remove(SystemVKind kind, int id) {
  switch (kind) {
    case SystemVKind::kMemory:
      return ::shmctl(id, IPC_RMID, nullptr) == 0;
    case SystemVKind::kSemaphores:
      return ::semctl(id, 0, IPC_RMID) == 0;
    case SystemVKind::kQueue:
      return ::msgctl(id, IPC_RMID, nullptr) == 0;
  }
  return false;
}

bool is_alive(int64_t pid) {
  return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

bool is_mine(int64_t owner) {
  return owner == static_cast<int64_t>(::geteuid());
}

// Only root's jobs make things that belong to others.
bool could_be_ours(int64_t owner) {
  return ::geteuid() == 0 || is_mine(owner);
}

std::vector<SystemVEntry> list(size_t kind) {
  FileReader reader;
  return parse_system_v(kKinds[kind], reader.read(kLists[kind]).value_or(""));
}

}  // namespace

std::vector<SystemVEntry> parse_system_v(SystemVKind kind, std::string_view text) {
  std::vector<SystemVEntry> entries;
  next_line(text);  // the names of the columns
  while (auto line = next_line(text)) {
    int64_t columns[16] = {};
    int number = 0;
    for (std::string_view word = next_word(*line); !word.empty() && number < 16; word = next_word(*line))
      columns[number++] = parse_number(word).value_or(0);
    if (number < 10) continue;
    SystemVEntry entry;
    entry.key = columns[0];
    entry.id = columns[1];
    if (kind == SystemVKind::kMemory) {
      entry.bytes =
          number > 14 ? columns[14] : columns[3];  // resident; kernels before 2.6.39 tell the size only
      entry.maker = columns[4];
      entry.attached = columns[6];
      entry.owner = columns[7];
    } else if (kind == SystemVKind::kSemaphores) {
      entry.bytes = columns[3] * 64;  // what the kernel takes for each
      entry.owner = columns[4];
    } else {
      entry.bytes = columns[3];
      entry.maker = columns[5];
      entry.owner = columns[7];
    }
    entries.push_back(entry);
  }
  return entries;
}

RemainsWatch::Room RemainsWatch::room_of(const std::string& mount_point) {
  struct statvfs room = {};
  if (::statvfs(mount_point.c_str(), &room) != 0) return {};
  return {room.f_blocks - room.f_bfree, room.f_files - room.f_ffree};
}

bool RemainsWatch::is_since_begin(const timespec& time) const {
  return time.tv_sec > begin_.tv_sec || (time.tv_sec == begin_.tv_sec && time.tv_nsec >= begin_.tv_nsec);
}

void RemainsWatch::begin() {
  ::clock_gettime(CLOCK_REALTIME_COARSE, &begin_);  // which is what files are stamped with
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    if (count(kKinds[kind]) == 0) continue;
    for (const SystemVEntry& entry : list(kind)) ids_before_[kind].insert(entry.id);
  }
  mounts_before_ = mount_table();
  std::set<std::string_view> seen;  // one file system may be mounted in several places
  for (const MountEntry& mount : *mounts_before_) {
    if (mount.type == "tmpfs" && !mount.read_only && seen.insert(mount.device).second &&
        ::access(mount.point.c_str(), W_OK) == 0)
      rooms_before_.emplace_back(mount.point, room_of(mount.point));
  }
}

void RemainsWatch::find_system_v(std::vector<Leftover>& found, bool clean, const PageCharges& charges) const {
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    if (count(kKinds[kind]) == 0) continue;
    for (const SystemVEntry& entry : list(kind)) {
      if (ids_before_[kind].count(entry.id) != 0 || is_alive(entry.maker) || !could_be_ours(entry.owner))
        continue;
      const std::string key = entry.key != 0 ? fmt::format("key {:#x}", static_cast<uint32_t>(entry.key))
                                             : std::string("private");
      Leftover left{kNames[kind], fmt::format("{} ({})", entry.id, key), entry.owner, entry.bytes};
      const bool is_known =
          kKinds[kind] != SystemVKind::kMemory || charges.has_segment(static_cast<int>(entry.id));
      if (clean && entry.attached == 0 && is_mine(entry.owner) && is_known)
        left.removed = remove(kKinds[kind], static_cast<int>(entry.id));
      found.push_back(std::move(left));
    }
  }
}

void RemainsWatch::find_files(std::vector<Leftover>& found, bool clean, const PageCharges& charges) const {
  std::optional<FileUsers> users;
  for (const auto& [point, before] : rooms_before_) {
    struct stat top = {};
    ::stat(point.c_str(), &top);
    // Others free and make as much: then the names at its top were changed, where nearly all are.
    if (room_of(point) == before && !is_since_begin(top.st_mtim)) continue;
    std::error_code error;
    auto walk = std::filesystem::recursive_directory_iterator(
        point, std::filesystem::directory_options::skip_permission_denied, error);
    for (int seen = 0; !error && walk != std::filesystem::end(walk) && seen < kMostFiles;
         walk.increment(error), ++seen) {
      struct stat file = {};
      const std::string path = walk->path().string();
      if (::lstat(path.c_str(), &file) != 0) continue;
      if (S_ISDIR(file.st_mode)) {
        if (file.st_dev != top.st_dev) walk.disable_recursion_pending();
        continue;
      }
      if (!is_since_begin(file.st_ctim) || !S_ISREG(file.st_mode) || !could_be_ours(file.st_uid)) continue;
      if (!users) users.emplace();
      if (users->has(file.st_dev, file.st_ino)) continue;  // somebody lives who uses it: no leftover
      Leftover left{"file", path, static_cast<int64_t>(file.st_uid), int64_t{file.st_blocks} * 512};
      if (clean && is_mine(left.owner) && charges.has_file(path)) left.removed = ::unlink(path.c_str()) == 0;
      found.push_back(std::move(left));
    }
  }
}

void RemainsWatch::find_mounts(std::vector<Leftover>& found, bool clean) const {
  const auto now = mount_table();
  if (now == mounts_before_) return;
  for (const MountEntry& mount : *now) {
    const bool was_there = std::any_of(
        mounts_before_->begin(), mounts_before_->end(),
        [&](const MountEntry& old) { return old.point == mount.point && old.device == mount.device; });
    if (was_there) continue;
    Leftover left{"mount", fmt::format("{} ({})", mount.point, mount.type), -1, 0};
    if (mount.type == "tmpfs" || mount.type == "ramfs")
      left.bytes = static_cast<int64_t>(room_of(mount.point).blocks) * ::sysconf(_SC_PAGESIZE);
    if (clean) left.removed = ::umount2(mount.point.c_str(), MNT_DETACH) == 0;
    found.push_back(std::move(left));
  }
}

std::vector<Leftover> RemainsWatch::end(bool clean, const PageCharges& charges) {
  std::vector<Leftover> found;
  if (!mounts_before_) return found;
  find_mounts(found, clean);
  find_system_v(found, clean, charges);
  find_files(found, clean, charges);
  return found;
}

}  // namespace plimsoll
