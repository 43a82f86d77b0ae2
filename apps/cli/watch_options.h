// What `plimsoll watch` was asked to do.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::cli {

struct WatchOptions {
  int pid = 0;                       // 0: not given
  std::vector<std::string> command;  // behind `--`
  double interval_seconds = 1;
  bool interval_is_given = false;  // otherwise the first seconds are watched more closely
  double duration_seconds = 0;     // 0: until the process ends or Ctrl-C
  std::string record, replay, html;
  std::string pattern;        // of the lines on stdout that are iterations; empty: none
  int iterations_fd = -1;     // the command's descriptor that gets one line per iteration; -1: none
  bool only_process = false;  // without descendants
  bool trim = false, reclaim = false, restart = false;
  bool no_ask = false;  // what runtimes hold, of a command that watch starts
  bool json = false;
};

// As parse_duration, from 10 ms to 1e8 s; throws UsageError.
double parse_seconds(const char* option, const std::string& text);
// Throws UsageError for what makes no sense together.
void check(const WatchOptions& options);

}  // namespace plimsoll::cli
