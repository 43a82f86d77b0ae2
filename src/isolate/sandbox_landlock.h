// Landlock: the kernel's own list of what a process may reach, added to ordinary permissions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isolate/sandbox_paths.h"

namespace plimsoll::sandbox {

// 0: the kernel has none, or it is switched off.
int landlock_abi() noexcept;

// What is permitted, prepared in the parent; used in the child.
class Landlock {
 public:
  Landlock() = default;
  // `abi` as landlock_abi() gave it. With `network` TCP is not restricted.
  Landlock(int abi, bool network);

  // Rights on a path as the job will see it, and on all beneath it.
  void Permit(std::string path, Access access);
  // The same for the process's own directory in /proc, whatever its pid will be.
  void PermitOwnProcess();

  // In the child, before capabilities are dropped: a ruleset's descriptor, or a negative errno and the path.
  int Build(const char** path) const noexcept;
  // In the child, after no_new_privs: puts the ruleset in force and closes it. 0 or a negative errno.
  static int Restrict(int ruleset) noexcept;

 private:
  struct Rule {
    std::string path;
    bool follow_links = false;
    uint64_t rights = 0;       // on a directory and what is beneath it
    uint64_t file_rights = 0;  // the same for a path that is not a directory
  };
  static int Add(int ruleset, const Rule& rule) noexcept;

  uint64_t handled_rights_ = 0;
  uint64_t handled_network_ = 0;
  uint64_t scoped_ = 0;
  std::vector<Rule> rules_;
};

}  // namespace plimsoll::sandbox
