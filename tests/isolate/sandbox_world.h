// The world outside a sandbox, as escape attempts look for it: files, listeners, shared memory, a process.
#pragma once

#include <map>
#include <string>

#include "isolate/sandbox_harness.h"

namespace plimsoll::test {

class World {
 public:
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Puts everything back that an attempt may have changed.
  void Restore();
  // Replaces {secret}, {readable}, {writable}, {outside}, {pid}, ... in an argument.
  std::string Expand(std::string argument) const;
  std::string path(const std::string& name) const { return scratch_.path(name); }
  int terminal() const { return terminal_; }

 private:
  void OpenListeners();
  void OpenMemory();
  void OpenTerminal();

  ScratchDirectory scratch_;
  std::map<std::string, std::string> names_;
  std::vector<int> descriptors_;
  char secret_byte_ = 's';
  int shared_memory_ = -1;
  int terminal_ = -1;
};

}  // namespace plimsoll::test
