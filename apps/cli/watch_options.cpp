#include "watch_options.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "command.h"

namespace plimsoll::cli {

double parse_seconds(const char* option, const std::string& text) {
  static const std::map<std::string, double> units = {{"", 1},   {"ms", 1e-3}, {"s", 1},
                                                      {"m", 60}, {"h", 3600},  {"d", 86400}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto known = units.find(unit);
  const double seconds = error != std::errc() || known == units.end() ? -1 : number * known->second;
  if (!(seconds >= 0.01 && seconds <= 1e8))
    throw UsageError(fmt::format(
        "{}: expected a time of at least 10ms, such as 500ms, 1s, 5m or 2h, found '{}'", option, text));
  return seconds;
}

namespace {

void need(bool condition, const char* message) {
  if (!condition) throw UsageError(message);
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
  need(options.html.empty() || (options.html != options.record && options.html != options.replay),
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
