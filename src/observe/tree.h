// A process and its descendants, found again and again at little cost.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "observe/file_reader.h"

namespace plimsoll {

// Whoever was once seen to descend from the root stays a member until it ends, also when its parent is gone.
class ProcessTree {
 public:
  ProcessTree(std::string proc_root, int root) : proc_root_(std::move(proc_root)), root_(root) {}

  struct Member {
    int pid = 0;
    uint64_t start_ticks = 0;  // 0 for the root: its identity is its owner's business
  };
  // The members now, the root first.
  const std::vector<Member>& update(FileReader& reader);
  // The process is gone, or its pid is another's: no member any more, unless it is found anew.
  void drop(int pid);

 private:
  struct Known {
    int parent = 0;
    uint64_t start_ticks = 0;
  };
  bool anything_new(FileReader& reader);
  std::vector<int> list_processes() const;
  void forget(const std::vector<int>& living);

  std::string proc_root_;
  int root_;
  int64_t last_pid_ = -1;
  std::unordered_map<int, Known> known_;  // every process that was looked at
  std::vector<Member> members_;
};

}  // namespace plimsoll
