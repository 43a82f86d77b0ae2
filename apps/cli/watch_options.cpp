#include "watch_options.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "command.h"
#include "duration.h"

namespace plimsoll::cli {

double parse_seconds(const char* option, const std::string& text) {
  const double seconds = std::chrono::duration<double>(parse_duration(text, option)).count();
  if (!(seconds >= 0.01 && seconds <= 1e8))
    throw UsageError(fmt::format("{}: expected a time from 10ms to three years, found '{}'", option, text));
  return seconds;
}

namespace {

void need(bool condition, const char* message) {
  if (!condition) throw UsageError(message);
}

// Whether both names lead to the same place, also before anything is there. What is no file, such as
// /dev/null, has room for all.
bool is_same_file(const std::string& one, const std::string& other) {
  struct stat first = {}, second = {};
  const bool has_first = ::stat(one.c_str(), &first) == 0, has_second = ::stat(other.c_str(), &second) == 0;
  if (has_first != has_second) return false;
  if (has_first)
    return !S_ISCHR(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  const auto whole = [](std::filesystem::path path) {
    std::error_code error;
    for (int link = 0; link < 40 && std::filesystem::is_symlink(path, error); ++link)
      path = path.parent_path() / std::filesystem::read_symlink(path, error);
    const auto known = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    return error ? path : known;
  };
  return whole(one) == whole(other);
}

}  // namespace

void check(const WatchOptions& options) {
  const bool command = !options.command.empty(), replay = !options.replay.empty();
  const int targets = (options.pid != 0) + command + replay;
  need(targets == 1, "watch what? Give one of --pid P, --replay FILE or -- COMMAND...");
  const bool counts = !options.pattern.empty() || options.iterations_fd >= 0;
  need(command || !counts, "--iterations-from-stdout and --iterations-fd need a command behind --");
  need(options.pattern.empty() || options.iterations_fd < 0,
       "--iterations-from-stdout and --iterations-fd: iterations are counted in one way only");
  need(!replay || options.record.empty(), "--record: a replay has nothing to record");
  for (const std::string& recording : {options.record, options.replay})
    need(options.html.empty() || recording.empty() || !is_same_file(options.html, recording),
         "--html: the page would replace the recording: give it another name");
  need(!replay || options.duration_seconds == 0, "--duration: a replay is as long as its recording");
  const bool experiments = options.trim || options.reclaim || options.restart;
  need(!experiments || !replay, "--trim, --reclaim and --restart need a live process, not a recording");
  need(!experiments || options.duration_seconds > 0,
       "--trim, --reclaim and --restart happen at the end of the watch: say when, with --duration");
  need(command || !options.reclaim,
       "--reclaim works only on a command that watch started, in a cgroup of its own");
  need(command || !options.restart, "--restart works only on a command that watch started");
}

}  // namespace plimsoll::cli
