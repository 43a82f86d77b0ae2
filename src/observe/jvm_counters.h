// What a JVM says about its own heap: the counters that it maps from a file for tools such as jstat.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "observe/file_reader.h"

namespace plimsoll {

struct JvmCounters {
  int64_t live_bytes = 0;   // the old generation and the survivors: what was left at the last collection
  int64_t collections = 0;  // so far, of all collectors
  enum Space : size_t { kEden, kSurvivors, kOtherSurvivors, kOld, kSpaces };
  std::array<int64_t, kSpaces> used_bytes = {};              // now, garbage among it
  int64_t young_capacity_bytes = 0, old_capacity_bytes = 0;  // committed, which need not be resident
  bool has_regions = false;                                  // G1: spaces are no places of their own
};

// How much of a heap was used at some time, and is resident since: pages stay until they are uncommitted.
class TouchedHeap {
 public:
  int64_t update(const JvmCounters& now);

 private:
  std::array<int64_t, JvmCounters::kSpaces> most_ = {};
  int64_t capacity_bytes_ = 0;  // of both generations
};

// The file's bytes, all of which are distrusted. Nothing where they are no counters, or a collector's without
// generations.
std::optional<JvmCounters> parse_jvm_counters(std::string_view bytes);

bool is_jvm(std::string_view name);  // a process with such a name may be one

// Where a JVM's file is, relative to /proc/PID: "root/tmp/hsperfdata_USER/PID", with its pid in its own
// namespace; empty if there is none (yet). `directory` is the descriptor of /proc/PID.
std::string find_jvm_counters(int directory, FileReader& reader);

}  // namespace plimsoll
