#include "isolate/freezer.h"

#include <fcntl.h>

#include <new>
#include <string>

#include "isolate/job_cgroup.h"
#include "observe/cgroup.h"

namespace plimsoll {

void thaw(int pid) noexcept try {
  const auto theirs = find_controller(cgroup_places(pid), "freezer");
  const auto ours = find_controller(cgroup_places(0), "freezer");
  if (!theirs || !ours || theirs->version != 1) return;
  std::string directory = theirs->directory;
  while (directory != ours->directory && directory.size() > theirs->mount_point.size()) {
    write_file_at(AT_FDCWD, (directory + "/freezer.state").c_str(), "THAWED");
    directory.resize(directory.rfind('/'));
  }
} catch (const std::bad_alloc&) {  // then it stays frozen, and is told so
}

}  // namespace plimsoll
