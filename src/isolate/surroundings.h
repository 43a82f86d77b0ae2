// Where this process may make cgroups for its jobs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "observe/cgroup.h"

namespace plimsoll {

struct Surroundings {
  std::optional<CgroupPlace> own_memory;  // the caller's own: what residue is read from
  // Our own places, where we may make children: absent if there is none or we may not.
  std::optional<CgroupPlace> memory;
  std::optional<CgroupPlace> unified;  // to kill a group in one step, to be born in, for its CPU time
  std::optional<CgroupPlace> pids;
  std::optional<CgroupPlace> cpuacct;  // only where there is no unified tree
  std::string seated_beneath;          // the cgroup in a child of which we sit (seat.h); empty: in our own
  std::vector<std::string> obstacles;  // why not, in sentences
  // We are a job of one of us, whose cgroups are mounted read-only: root opens its own again. The directories
  // above are then beneath /proc/self/fd, as long as these live.
  std::vector<std::shared_ptr<const Descriptor>> opened;
};

// Read again when this process was moved to another cgroup. Thread-safe.
std::shared_ptr<const Surroundings> surroundings();
// The same for a recorded tree; reads, and for version 2 switches controllers on, for which we may have to
// take a seat.
Surroundings look_around(const CgroupRoots& roots);

// 0: unknown.
int64_t machine_memory_bytes() noexcept;

}  // namespace plimsoll
