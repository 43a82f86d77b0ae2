// What `plimsoll watch --json` prints: one object per sample, the last with the verdict.
#pragma once

#include "report.h"
#include "watch_history.h"

namespace plimsoll::cli {

Json sample_object(const Sample& sample);
// The last line: the verdict, the last reading's views, account, experiments and notes.
Json verdict_object(const WatchHistory& history);
std::string json_line(const Json& object);  // with its newline

}  // namespace plimsoll::cli
