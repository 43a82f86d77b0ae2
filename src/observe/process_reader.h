// Reads one process or a whole tree into a ProcessView, remembering each one's last full reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/jvm_counters.h"
#include "observe/process_view.h"
#include "observe/share_budget.h"
#include "observe/tree.h"

namespace plimsoll {

// What a reading could not do; for the account's notes.
struct ReadingGaps {
  int64_t denied = 0;    // processes that are there and could not be read, or not their mappings
  int64_t vanished = 0;  // processes that ended while they were read
  int64_t lazily_freed_bytes = 0;
  int64_t huge_tlb_bytes = 0;
};

class ProcessReader {
 public:
  // `cost_limit`: the share of a core that all readings may take.
  // `told_directory`: where runtimes that were asked write what they hold; empty: none was.
  ProcessReader(std::string proc_root, int pid, bool tree, double cost_limit, std::string told_directory);

  // `root` is the open directory of the first process and `stat` what it said just now. A full reading walks
  // every mapping; with `files`, or where the kernel's counter does not agree, it also asks the kernel for
  // its own sums, which is a second walk.
  struct Result {
    ProcessView view;
    bool exact = true;  // false: cheap, or some mappings could not be read
    ReadingGaps gaps;
    std::vector<TreeMember> members;  // as Sample has them
  };
  Result read(const ProcessDirectory& root, const ProcessStat& stat, bool full, FileShares* files = nullptr);
  // The root executed another program: nothing that was remembered holds.
  void forget();
  // Processor time that went into shares so far.
  double share_seconds() const noexcept { return share_budget_.spent(); }
  const std::vector<ProcessTree::Member>& members() const noexcept { return members_; }

 private:
  struct Memory {
    uint64_t start_ticks = 0;
    uint64_t program = 0;
    std::string command;
    TouchedHeap touched;   // by a JVM
    std::string counters;  // where a JVM's are, beneath its directory; empty: not known
    bool has_full = false;
    FullReading full, before;  // the last two
    // Newer than the last full reading; with what members there were.
    Share share;
    uint64_t generation = 0;
    bool was_asked = false;  // for its share, since the last full reading
  };
  bool read_living(const ProcessDirectory& directory, const ProcessStat& stat, bool full, FileShares* files,
                   Result& result);
  bool read_member(const ProcessDirectory& directory, const ProcessStat& stat, bool full, FileShares* files,
                   Result& result);
  // 0, or the errno of what could not be read; ESRCH: the process is gone.
  int read_full(const ProcessDirectory& directory, const std::string& prefix, FullReading& full,
                FileShares* files);
  // Puts what is its own of common pages into a view that was not read in full: each is counted once.
  void settle_share(const ProcessDirectory& directory, const std::string& prefix, const ProcessStatus& status,
                    Memory& memory, ProcessView& view);
  // What a process whose mappings were never read holds of its own, as far as cheap figures tell.
  ProcessStatus own_part(const ProcessStat& stat, const ProcessStatus& status) const;
  // What lives after a collection, by the JVM's own counters.
  void ask_jvm(const ProcessDirectory& directory, Memory& memory, TreeMember& told);
  // The same of a runtime that was asked, by its process's number as it knows itself.
  void read_told(const std::string& number, const ProcessStat& stat, TreeMember& told);
  // The beginning of the command line, for people.
  std::string command_of(const ProcessDirectory& directory, const std::string& prefix,
                         const ProcessStat& stat);
  void refresh_context(const ProcessDirectory& root, const ProcessStat& stat);

  std::string proc_root_;
  bool with_tree_;
  std::string told_directory_;  // empty: no runtime was asked
  bool numbers_are_ours_;       // system calls know the threads in proc_root by their numbers
  ProcessTree tree_;
  std::vector<ProcessTree::Member> members_;
  std::map<int, Memory> memories_;
  std::map<uint64_t, ProcessStatus> relatives_;  // the first of each program in the reading under way
  bool proportional_ = false;
  bool has_changed_ = false;  // who is there, in the reading under way
  // Counts these changes: the same pages are shared among more or fewer.
  uint64_t generation_ = 0;
  ShareBudget share_budget_;
  MappingContext context_;
  int full_readings_ = 0;
  FileReader reader_;
  NameTable names_;
  std::vector<Vma> vmas_;
};

}  // namespace plimsoll
