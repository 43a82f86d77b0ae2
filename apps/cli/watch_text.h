// How watch words its figures, for people.
#pragma once

#include <plimsoll/observe.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch_history.h"

namespace plimsoll::cli {

// Names come from strangers: '?' for whatever is not printable ASCII.
std::string plain_text(std::string_view text);
// Lines of at most `width` characters, broken between words; a longer word is broken anywhere.
std::vector<std::string> wrapped(std::string_view text, size_t width);
// "12.3 MiB", "-1.0 KiB"
std::string amount(double bytes);
// "0:05", "1:02:03"
std::string clock_text(double seconds);
// "python3 service.py" or "node (pid 42)".
std::string target_text(const RecordingHeader& header);
// "leak: live heap, 1.2 KiB per iteration (1.1 KiB to 1.3 KiB), confidence 97 %"
std::string verdict_text(const Verdict& verdict);
// One sample when nobody watches the terminal, with the verdict so far.
std::string sample_line(const Sample& sample, const std::optional<Verdict>& verdict);
// What is printed at the end: verdict, evidence, account, experiments, notes.
std::string report_text(const WatchHistory& history);

}  // namespace plimsoll::cli
