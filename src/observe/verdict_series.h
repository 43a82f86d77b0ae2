// Samples as series of numbers for the verdict: cleaned of gaps, jumps and resets.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "observe/verdict_trend.h"
#include "plimsoll/observe.h"

namespace plimsoll {

enum Part : size_t {
  kHeapPart,         // brk's heap and the arenas of allocators
  kMapsPart,         // other private anonymous maps, large blocks of malloc among them
  kStacksPart,       // of all threads
  kWrittenPart,      // written copies of mapped files' pages
  kPrivatePart,      // the four above together
  kMappedPart,       // pages of mapped files
  kSharedPart,       // shared memory, mapped or not
  kSlabPart,         // kernel memory that nobody can reclaim, as far as the kernel tells
  kCachePart,        // page cache that no process maps
  kReclaimablePart,  // slab that the kernel says it can reclaim
  kNamesPart,        // of files that nobody uses, which the kernel can forget; of the whole machine
  kForkSharedPart,   // private pages that several processes still share after a fork
  kLivePart,         // what runtimes say was left at their last collection
  kBesidePart,       // private memory beside the heaps of runtimes that tell what these take
  kDescriptorsPart,  // the rest are counts
  kThreadsPart,      // beyond the first of each process
  kMappingsPart,
  kProcessesPart,
  kPartCount,
};

struct Series {
  bool by_iteration = false;  // x is iterations; seconds otherwise
  bool has_container = false;
  bool knows_reclaimable = false;  // the container tells which slab can be reclaimed
  double seconds = 0;              // from the first sample used to the last
  double span = 0;                 // of x
  size_t samples = 0, gaps = 0;
  double turnover = 0;  // of x: the longest that a process lived of those that come and go; 0: none do
  std::array<Points, kPartCount> parts;
  struct Member {
    int pid = 0;
    std::string command;
    Points bytes;         // its own private memory
    bool tells = false;   // what its collections left
    bool untold = false;  // it has heaps of whose collections nothing is told
  };
  std::vector<Member> members;  // that were seen again and again; more than one: a tree
  Points collections;           // so far, by runtimes that tell what was left; empty: none does
  // Private memory beyond the heaps of runtimes that tell what these take, or have touched; empty: they do
  // not.
  Points beyond_heaps;
  bool is_exact = false;  // what lives is told by full collections: it is no upper bound
  Points clock;           // seconds at each x
};

double seconds_at(const Series& series, double x);

// Uses what follows the last restart of the process: when its pages fell to less than half across a gap.
Series make_series(std::span<const Sample> samples);

}  // namespace plimsoll
