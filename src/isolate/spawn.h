// Starts one process: everything is prepared before; between clone and exec the child, which shares our
// memory, makes nothing but system calls.
#pragma once

#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

class Confinement;

struct SpawnRequest {
  std::vector<std::string> programs;  // tried in turn, as a shell does with PATH
  std::vector<std::string> argv;
  std::vector<std::string> environment;           // "NAME=VALUE"
  std::string working_directory;                  // empty: ours
  std::vector<std::pair<int, int>> descriptors;   // (ours, the job's): 0, 1 and 2 among them
  std::vector<int> join;                          // open cgroup.procs files that the child writes itself into
  int cgroup_directory = -1;                      // a version 2 cgroup to be born in
  std::vector<std::pair<int, rlimit>> resources;  // RLIMIT_...
  const Confinement* confinement = nullptr;
  bool dies_with_thread = true;  // PR_SET_PDEATHSIG: killed when the calling thread ends
  bool detached = false;  // no child of ours: its parent ends at once. Nothing is known about it afterwards
};

struct Spawned {
  int pid = 0;
  Descriptor pidfd;
};

// Throws StartError. Then there is no child.
Spawned spawn(const SpawnRequest& request);

// What execvp would try for `name`.
std::vector<std::string> program_candidates(const std::string& name);

}  // namespace plimsoll
