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
  ProcessTree(std::string proc_root, int root);

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
  enum class News : uint8_t { kNone, kSome, kUnknown };
  News look_for_news(FileReader& reader);
  std::vector<int> list_processes() const;
  void forget(const std::vector<int>& living);
  void learn(const std::vector<int>& pids, FileReader& reader);
  void adopt(const std::vector<int>& pids, FileReader& reader);

  std::string proc_root_;
  int root_;
  bool numbers_are_ours_;  // the last pid that the kernel tells is of the pids in proc_root
  int64_t last_pid_ = -1, pid_before_ = -1;
  std::unordered_map<int, Known> known_;  // every process that was looked at
  std::vector<Member> members_;
};

}  // namespace plimsoll
