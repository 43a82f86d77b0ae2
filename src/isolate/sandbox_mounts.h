// A file system of the job's own, in a mount namespace of its own: a root that holds the visible paths and
// nothing else, a /tmp and a /dev/shm in memory, a /proc that shows the job's own processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isolate/sandbox_paths.h"

namespace plimsoll::sandbox {

class Mounts {
 public:
  // The parts that are there whatever is visible; also what the probe tries.
  explicit Mounts(int64_t temporary_bytes);

  void Show(const View& view);
  // In the child, in its own mount and PID namespaces, with capabilities. 0 or a negative errno; `path` then
  // points at the path it was about.
  int Apply(const char** path) const noexcept;

 private:
  enum class Kind : uint8_t { kDirectory, kFile, kLink, kBind, kDevice, kTemporary, kProc };
  struct Step {
    Kind kind;
    std::string target;  // in the new root
    std::string source;  // kBind, kDevice: in the old root; kLink: what it points to; kTemporary: options
    bool writable = false;
    bool optional = false;
  };
  void AddDirectories(const std::string& path);  // and its parents
  void AddMountPoint(const std::string& path, bool directory);
  static int Run(const Step& step) noexcept;

  std::vector<Step> steps_;
};

}  // namespace plimsoll::sandbox
