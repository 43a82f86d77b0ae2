// A process's mappings summed up by kind, and cheap readings scaled by what a full one found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/classify.h"
#include "observe/procfs.h"
#include "plimsoll/observe.h"

namespace plimsoll {

// Pages of one mapped file.
struct FileShare {
  int64_t rss_bytes = 0, pss_bytes = 0;
  int64_t written_bytes = 0;  // part of it: private copies, by Pss
};
using FileShares = std::map<std::string, FileShare>;

// What a walk over all mappings found, by Rss and by Pss, and the cheap figures of the same moment.
struct FullReading {
  ProcessView by_rss, by_pss;
  ProcessStatus status;
  int64_t lazily_freed_bytes = 0;  // MADV_FREE: would go at once under pressure
};

// What grows as something else did from `then` to `now`.
int64_t scaled(int64_t bytes, int64_t now, int64_t then) noexcept;

// What the kernel's figure and our sum may differ by: 2 % or 1 MiB.
bool is_small_rest(int64_t rest_bytes, int64_t whole_bytes) noexcept;

// Adds all mappings to a reading; files too where `files` is given.
void add_mappings(const std::vector<Vma>& vmas, const NameTable& names, const MappingContext& context,
                  FullReading& reading, FileShares* files);

// The view now, from the last full readings (none: nullptr) and the cheap figures. What the kernel's figure
// for anonymous memory changed by since the last goes to the kinds that changed that way between the last
// two, if they explain a tenth of it, otherwise to all by their sizes, of a rise nothing to stacks and
// written copies of files; files and shared memory grow with theirs. The kernel's figures may lag behind what
// the last full reading walked: a rise that only makes up for that is none.
ProcessView scale_view(const FullReading* last, const FullReading* before_last, const ProcessStatus& now,
                       bool proportional);

// What `status` has more than `relative`, a process of the same program whose pages it shares since a fork.
ProcessStatus beyond(const ProcessStatus& status, const ProcessStatus& relative);

// What is a process's own of pages that others map too, and the cheap figures of the same moment.
struct Share {
  bool known = false;
  ProcessStatus status;
  int64_t file_bytes = 0, shared_memory_bytes = 0;
};
Share share_of(const Rollup& rollup, const ProcessStatus& status);
// Files and shared memory from a share that is newer than what `view` was made from, scaled by the figures
// now.
void apply_share(const Share& share, const ProcessStatus& now, ProcessView& view);

// Adds bytes and counts.
void add_view(ProcessView& sum, const ProcessView& view);

}  // namespace plimsoll
