// A process as /proc would show it, written into a RecordedTree.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/recorded_tree.h"

namespace plimsoll::observed {

struct RecordedMapping {
  std::string header;  // "START-END PERMS OFFSET DEV INODE NAME"
  int rss_kib = 0;
  int anonymous_kib = 0;
  int pss_kib = -1;  // -1: as rss
  std::string flags = "rd wr mr mw me ac";
};

inline std::string smaps_of(const std::vector<RecordedMapping>& mappings) {
  std::string text;
  for (const RecordedMapping& mapping : mappings) {
    const int pss = mapping.pss_kib < 0 ? mapping.rss_kib : mapping.pss_kib;
    const int shared = pss < mapping.rss_kib ? mapping.rss_kib : 0;
    const int dirty = shared == 0 ? mapping.anonymous_kib : 0;
    text += fmt::format(
        "{}\nSize: 4 kB\nRss: {:8} kB\nPss: {:8} kB\nPss_Dirty: 0 kB\nShared_Clean: {} kB\nShared_Dirty: 0 "
        "kB\n"
        "Private_Clean: {} kB\nPrivate_Dirty: {} kB\nAnonymous: {} kB\nAnonHugePages: 0 kB\nSwap: 0 kB\n"
        "THPeligible: 0\nVmFlags: {} \n",
        mapping.header, mapping.rss_kib, pss, shared, shared == 0 ? mapping.rss_kib - dirty : 0, dirty,
        mapping.anonymous_kib, mapping.flags);
  }
  return text;
}

inline std::string stat_line(int pid, const std::string& name, char state, int parent, int threads = 1,
                             int start_ticks = 1000, int flags = 4194304) {
  // Fields 5 to 8, 10 to 19, 21, 23 to 25, then addresses as somebody with permission sees them.
  return fmt::format(
      "{} ({}) {} {} 1 1 0 -1 {} 0 0 0 0 0 0 0 0 20 0 {} 0 {} 1 1 1 4096 8192 70000 0 0 0 0 0 0 0 0 0 17 0 0 "
      "0 0 0 0 "
      "12288 16384 20480 1 2 3 4 0\n",
      pid, name, state, parent, flags, threads, start_ticks);
}

// A shell's mappings: 300 KiB of file, 200 KiB written copies and heap, 20 KiB stack.
inline std::vector<RecordedMapping> small_mappings() {
  return {
      {"55d000000000-55d000100000 r-xp 00000000 fe:00 11 /bin/service", 300, 0},
      {"55d000100000-55d000110000 rw-p 00100000 fe:00 11 /bin/service", 64, 50},
      {"55d000200000-55d000300000 rw-p 00000000 00:00 0 [heap]", 150, 150},
      {"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]", 20, 20},
  };
}

struct RecordedProcess {
  int pid = 7;
  std::string name = "service";
  char state = 'S';
  int parent = 1;
  int threads = 1;
  int start_ticks = 1000;
  std::vector<RecordedMapping> mappings = small_mappings();
  int missing_kib = 0;  // what VmRSS lags behind the mappings
};

inline void record(RecordedTree& tree, const RecordedProcess& process) {
  int rss = 0, anonymous = 0;
  for (const RecordedMapping& mapping : process.mappings) {
    rss += mapping.rss_kib;
    anonymous += mapping.anonymous_kib;
  }
  const std::string directory = fmt::format("/proc/{}", process.pid);
  tree.add(directory + "/stat", stat_line(process.pid, process.name, process.state, process.parent,
                                          process.threads, process.start_ticks));
  tree.add(directory + "/status",
           fmt::format(
               "Name:\t{}\nState:\t{}\nTgid:\t{}\nPid:\t{}\nPPid:\t{}\nVmPeak:\t 1 kB\nVmRSS:\t {} kB\n"
               "RssAnon:\t {} kB\nRssFile:\t {} kB\nRssShmem:\t 0 kB\nVmPTE:\t 40 kB\nVmSwap:\t 0 kB\n"
               "Threads:\t{}\n",
               process.name, process.state, process.pid, process.pid, process.parent,
               rss - process.missing_kib, anonymous, rss - anonymous - process.missing_kib, process.threads));
  tree.add(directory + "/smaps", smaps_of(process.mappings));
  tree.add(directory + "/fd/0", "");
  tree.add(directory + "/fd/1", "");
}

}  // namespace plimsoll::observed
