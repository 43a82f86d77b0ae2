#include "watch_experiments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <plimsoll/error.h>
#include <plimsoll/isolate.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "report.h"
#include "watch_text.h"

namespace plimsoll::cli {
namespace {

// malloc's lock is not recursive: a thread that stopped inside the allocator must not be made to enter it.
constexpr const char* kTrimScript = R"(
import gdb, time
def in_allocator():
    frame, depth = gdb.newest_frame(), 0
    while frame is not None and depth < 16:
        name = frame.name() or ''
        if 'alloc' in name or 'free' in name or 'trim' in name: return True
        frame, depth = frame.older(), depth + 1
    return False
result = 'busy'
for attempt in range(40):
    gdb.execute('attach ' + PID, to_string=True)
    if in_allocator():
        gdb.execute('detach', to_string=True)
        time.sleep(0.05)
        continue
    try: result = str(int(gdb.parse_and_eval('((int(*)(unsigned long))malloc_trim)(0)')))
    except gdb.error as error: result = 'error ' + str(error)
    gdb.execute('detach', to_string=True)
    break
print('plimsoll-trim ' + result)
)";

Completed run_gdb(std::vector<std::string> arguments) {
  plimsoll::Command command;
  command.argv = {"gdb", "-nx", "-batch"};
  for (const char* setting : {"set debuginfod enabled off", "set auto-load no", "set confirm off"})
    command.argv.insert(command.argv.end(), {"-iex", setting});
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.standard_output = command.standard_error = Output::kCapture;
  Limits limits;
  limits.wall_time = std::chrono::seconds(60);
  return Exec(std::move(command), limits);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string change(int64_t before, int64_t after) {
  const int64_t returned = before - after;
  return fmt::format("{} before, {} after: {} {}", human_bytes(before), human_bytes(after),
                     human_bytes(std::abs(returned)), returned >= 0 ? "came back" : "more than before");
}

std::string trim_problem(const Completed& done) {
  constexpr std::string_view kMark = "plimsoll-trim ";
  const size_t mark = done.output.find(kMark);
  if (mark == std::string::npos) {
    const std::string reason = first_line(done.error.empty() ? done.output : done.error);
    return fmt::format("gdb could not do it: {}", reason.empty() ? ending_name(done.receipt.ending) : reason);
  }
  const std::string result = first_line(done.output.substr(mark + kMark.size()));
  if (result == "0" || result == "1") return "";
  if (result == "busy")
    return "not done: the process was inside its allocator each time that it was looked at";
  if (result.find("malloc_trim") != std::string::npos)
    return "not done: the process has no malloc_trim, so its allocator is not glibc's";
  return fmt::format("not done: {}", result);
}

}  // namespace

void require_gdb() {
  try {
    if (run_gdb({"-ex", "python print(1)"}).output.find('1') != std::string::npos) return;
  } catch (const Error&) {
    // Said below.
  }
  throw Error(ErrorCode::kNotImplemented,
              "--trim calls malloc_trim in the process through gdb, and there is none with Python in PATH: "
              "install the package gdb");
}

Experiment trim(Observer& observer, int pid) {
  Experiment experiment;
  experiment.name = "trim";
  experiment.before = observer.Account().sample;
  std::string script = kTrimScript;
  script.replace(script.find("PID"), 3, fmt::format("'{}'", pid));
  std::string problem;
  try {
    problem = trim_problem(run_gdb({"-ex", "python exec('''" + script + "''')"}));
  } catch (const Error& error) {
    problem = error.what();
  }
  experiment.after = observer.Account().sample;
  const int64_t before = experiment.before.process.kernel_bytes,
                after = experiment.after.process.kernel_bytes;
  experiment.finding = problem.empty() ? "malloc_trim: the process held " + change(before, after) : problem;
  return experiment;
}

namespace {

// One write to a control file; the error number, or 0.
int write_control(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ::write(file, text.data(), text.size()) < 0 ? errno : 0;
  ::close(file);
  return error;
}

}  // namespace

Experiment reclaim(Observer& observer, const std::string& directory) {
  Experiment experiment;
  experiment.name = "reclaim";
  experiment.before = observer.Account().sample;
  if (!experiment.before.container) {
    experiment.after = experiment.before;
    experiment.finding = "not done: the container's memory cannot be read";
    return experiment;
  }
  const bool first_version = experiment.before.container->version == 1;
  const std::string path = directory + (first_version ? "/memory.force_empty" : "/memory.reclaim");
  const int error =
      write_control(path, first_version ? "0" : std::to_string(experiment.before.container->kernel_bytes));
  experiment.after = observer.Account().sample;
  // EAGAIN and EBUSY: not all that was asked for could be had, as is to be expected.
  if ((error != 0 && error != EAGAIN && error != EBUSY) || !experiment.after.container) {
    experiment.finding = fmt::format("not done: {}: {}", path, std::strerror(error));
    return experiment;
  }
  experiment.finding = fmt::format(
      "{}: the container held {}", first_version ? "memory.force_empty" : "memory.reclaim",
      change(experiment.before.container->kernel_bytes, experiment.after.container->kernel_bytes));
  return experiment;
}

}  // namespace plimsoll::cli
