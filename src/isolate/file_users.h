// The files that living processes have open or mapped, as far as we may see.
#pragma once

#include <sys/types.h>

#include <set>
#include <utility>

namespace plimsoll {

class FileUsers {
 public:
  FileUsers();  // looks at every process: slow
  bool has(dev_t device, ino_t file) const { return files_.count({device, file}) != 0; }

 private:
  std::set<std::pair<dev_t, ino_t>> files_;
};

}  // namespace plimsoll
