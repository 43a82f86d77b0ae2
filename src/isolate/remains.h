// What outlives a job though no process of it does: System V memory, semaphores and queues, files in memory,
// mounts. Told by what appeared while it ran: somebody else's that appeared at the same time is among it,
// unless whoever made it is still there.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "isolate/mount_table.h"
#include "isolate/page_charges.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

// Looks cheaply before and after; reads and walks only where something has changed.
class RemainsWatch {
 public:
  void begin();
  // `clean`: removes them, except what a living process has open or mapped, or belongs to another user; files
  // and segments only if `charges`, those of the job's cgroup, have them: others may have made some
  // meanwhile.
  std::vector<Leftover> end(bool clean, const PageCharges& charges);

 private:
  struct Room {
    uint64_t blocks = 0, files = 0;
    bool operator==(const Room&) const = default;
  };
  static Room room_of(const std::string& mount_point);
  bool is_since_begin(const timespec& time) const;
  void find_system_v(std::vector<Leftover>& found, bool clean, const PageCharges& charges) const;
  void find_files(std::vector<Leftover>& found, bool clean, const PageCharges& charges) const;
  void find_mounts(std::vector<Leftover>& found, bool clean) const;

  std::set<int64_t> ids_before_[3];  // segments, semaphores, queues
  std::shared_ptr<const std::vector<MountEntry>> mounts_before_;
  std::vector<std::pair<std::string, Room>> rooms_before_;
  timespec begin_ = {};
};

// One line of /proc/sysvipc/shm, sem or msg.
struct SystemVEntry {
  int64_t key = 0, id = 0, owner = -1, maker = 0, bytes = 0, attached = 0;
};
enum class SystemVKind : uint8_t { kMemory, kSemaphores, kQueue };
std::vector<SystemVEntry> parse_system_v(SystemVKind kind, std::string_view text);

}  // namespace plimsoll
