// Runs a program in a sandbox with as little around it as possible: the layers are tested before Job is.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "isolate/sandbox.h"

namespace plimsoll::test {

struct Ran {
  int status = -1;      // as wait gives it, of the job itself
  std::string output;   // stdout and stderr together
  std::string failure;  // of apply or exec; empty: the program ran
  std::vector<std::string> layers;
  std::vector<std::string> missing;

  bool Succeeded() const;  // exit code 0
};

// `sandbox` may be null: then the program runs as it is. Descriptors above 2 are closed. `input`: its stdin;
// -1: ours.
Ran run(const std::vector<std::string>& argv, Sandbox* sandbox, int input = -1);
Ran run(const std::vector<std::string>& argv, const SandboxOptions& options);

// A directory that is removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace plimsoll::test
