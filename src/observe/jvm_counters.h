// What a JVM says about its own heap: the counters that it maps from a file for tools such as jstat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "observe/file_reader.h"

namespace plimsoll {

struct JvmCounters {
  int64_t live_bytes = 0;   // the old generation and the survivors: what was left at the last collection
  int64_t collections = 0;  // so far, of all collectors
};

// The file's bytes, all of which are distrusted. Nothing where they are no counters, or a collector's without
// generations.
std::optional<JvmCounters> parse_jvm_counters(std::string_view bytes);

bool is_jvm(std::string_view name);  // a process with such a name may be one

// Where a JVM's file is, relative to /proc/PID: "root/tmp/hsperfdata_USER/PID", with its pid in its own
// namespace; empty if there is none (yet). `directory` is the descriptor of /proc/PID.
std::string find_jvm_counters(int directory, FileReader& reader);

}  // namespace plimsoll
