// `plimsoll lab fork-vs-spawn`: the experiment's data, and how it is shown.
#pragma once

#include <plimsoll/observe.h>

#include <string>
#include <vector>

#include "report.h"

namespace plimsoll::cli {

// The process's view (the service and its workers) and the container's, at one moment.
struct TwoViews {
  int64_t process_bytes = 0;
  int64_t container_bytes = 0;
  int64_t processes = 0;
  ContainerView parts;  // of container_bytes
  bool has_container = false;
};

struct WayResult {
  std::string way;               // as service.py names it
  TwoViews before, peak, after;  // peak: the highest of each view, not of one moment
};

struct LabResult {
  std::string kernel, python, snippet, mechanism;
  int64_t files = 0;               // mapped by the snippet; their pages are dropped before each way ...
  int64_t still_cached_bytes = 0;  // ... but for those that other processes hold
  std::vector<WayResult> ways;
};

// What the article says, and what was measured: sentences with figures.
std::vector<std::string> lab_findings(const LabResult& result);
std::string lab_table(const LabResult& result);
std::string lab_svg(const LabResult& result);
Json lab_json(const LabResult& result);

}  // namespace plimsoll::cli
