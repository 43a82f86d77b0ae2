#include <fmt/core.h>
#include <plimsoll/error.h>
#include <plimsoll/isolate.h>
#include <plimsoll/observe.h>
#include <poll.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"
#include "watch_display.h"
#include "watch_html.h"
#include "watch_loop.h"

namespace plimsoll::cli {
namespace {

int replay(const WatchOptions& options) {
  Recording recording = ParseRecording(read_file(options.replay), options.replay);
  WatchHistory history;
  history.header = std::move(recording.header);
  history.samples = std::move(recording.samples);
  history.account = std::move(recording.account);
  history.notes = std::move(recording.notes);
  if (!recording.note.empty()) history.notes.push_back(std::move(recording.note));
  history.verdict = recording.verdict ? *recording.verdict : Judge(history.samples);
  const std::unique_ptr<Display> display = make_display(options.json);
  display->replay(history);
  for (Outlet& output = display->output(); output.is_behind(); output.flush()) {
    pollfd room = {output.descriptor(), POLLOUT, 0};
    ::poll(&room, 1, -1);
  }
  if (!options.html.empty()) write_page(options.html, history);
  return history.verdict.kind == VerdictKind::kLeak ? 1 : 0;
}

int watch(const WatchOptions& options) {
  check(options);
  catch_interrupts();
  if (!options.replay.empty()) return replay(options);
  try {
    return Watch(options).run();
  } catch (const Error& error) {
    // A command that does not exist is told as a shell tells it.
    const int code = options.command.empty() ? 125 : start_failure_exit_code(error);
    if (code == 125) throw;
    fmt::print(stderr, "plimsoll: {}\n", error.what());
    return code;
  }
}

void add_target_options(Arguments arguments, WatchOptions& options) {
  arguments.add_option("--pid", options.pid, "the process to watch, with its descendants").range(1, 1 << 30);
  arguments.add_option("--replay", options.replay, "show a recording instead of a process")
      .check(check_not_empty);
  arguments.add_flag("--only-process", options.only_process, "leave its descendants out");
  arguments.add_flag("--no-ask", options.no_ask,
                     "do not ask Node, by NODE_OPTIONS, what its heap holds after full collections");
  arguments
      .add_option("--iterations-from-stdout", options.pattern,
                  "each line of the command's stdout that matches this regular expression is an iteration")
      .check(check_not_empty);
  arguments
      .add_option("--iterations-fd", options.iterations_fd,
                  "the command writes one line per iteration to this descriptor of its own")
      .range(3, 63);
}

void add_result_options(Arguments arguments, WatchOptions& options) {
  arguments.add_option("--record", options.record, "write every sample to this file, as lines of JSON")
      .check(check_not_empty);
  arguments.add_option("--html", options.html, "write a page with charts to this file")
      .check(check_not_empty);
  arguments.add_flag("--trim", options.trim, "at the end: malloc_trim in the process, by ptrace; measured");
  arguments.add_flag("--reclaim", options.reclaim, "at the end: reclaim the command's own cgroup; measured");
  arguments.add_flag("--restart", options.restart, "at the end: start the command anew; measured");
  arguments.add_flag("--json", options.json, "print one JSON object per sample, the last with the verdict");
}

}  // namespace

Command watch_command(Arguments parent, const std::vector<std::string>& rest) {
  Arguments arguments =
      parent.add_command("watch", "Explain any process's memory, and judge whether it leaks");
  auto options = std::make_shared<WatchOptions>();
  struct Times {
    std::string interval, duration;
  };
  auto times = std::make_shared<Times>();
  add_target_options(arguments, *options);
  arguments
      .add_option("--interval", times->interval,
                  "between two samples, such as 500ms (1s, and 250ms for the first 12 s)")
      .check(check_not_empty);
  arguments
      .add_option("--duration", times->duration,
                  "how long, such as 30s or 5m; otherwise until the process ends or Ctrl-C")
      .check(check_not_empty);
  add_result_options(arguments, *options);
  arguments.footer(
      "A command that watch starts goes behind -- and ends with it. Exit code 1: a leak.\n"
      "Example: plimsoll watch --duration 60s --html watch.html -- python3 service.py\n"
      "         plimsoll watch --pid 4242");
  return {arguments, [options, times, rest] {
            options->command = rest;
            options->interval_is_given = !times->interval.empty();
            if (options->interval_is_given)
              options->interval_seconds = parse_seconds("--interval", times->interval);
            if (!times->duration.empty())
              options->duration_seconds = parse_seconds("--duration", times->duration);
            return watch(*options);
          }};
}

}  // namespace plimsoll::cli
