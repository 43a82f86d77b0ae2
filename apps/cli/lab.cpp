// `plimsoll lab fork-vs-spawn`: a service that runs somebody else's code, five ways, each in a container of
// its own.
#include <fcntl.h>
#include <fmt/core.h>
#include <plimsoll/error.h>
#include <plimsoll/isolate.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "command.h"
#include "descriptor.h"
#include "files.h"
#include "interrupt.h"
#include "lab_report.h"
#include "lab_service.inc"
#include "lab_stand_in_snippet.inc"
#include "lab_torch_snippet.inc"
#include "options.h"
#include "socket_line.h"
#include "temporary_directory.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct LabOptions {
  std::string python = "/usr/bin/python3", snippet, svg;
  bool stand_in = false;
  bool json = false;
};

constexpr const char* kWays[] = {"in process", "reset and trim", "fork", "spawn", "plimsoll exec"};

[[noreturn]] void give_up(ErrorCode code, std::string message) {
  throw Error(code, std::move(message));
}

// A directory for the experiment's scripts.
class Room {
 public:
  std::string write(const char* name, const std::string& text) const {
    std::string path = (directory_.path() / name).string();
    NewFiles files;
    files.add(path, {text});
    files.commit();
    return path;
  }

 private:
  TemporaryDirectory directory_{"lab"};
};

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Nothing: it fails; `why` is the last line of what it says about it.
std::string python_says(const std::string& python, const std::string& code, const std::string& argument = "",
                        std::string* why = nullptr) {
  plimsoll::Command command;
  command.argv = {python, "-c", code, argument};
  command.standard_output = Output::kCapture;
  command.standard_error = Output::kCapture;
  Job job = Job::Start(command);
  std::optional<Completed> completed;
  while (!(completed = job.WaitFor(milliseconds(50)))) check_interrupted();
  if (why != nullptr) *why = last_line(std::move(completed->error));
  return completed->receipt.exit_code == 0 ? completed->output : std::string();
}

// The files that a run of the snippet maps: where its page cache will be.
std::vector<std::string> mapped_files(const std::string& python, const std::string& snippet) {
  std::string why;
  const std::string maps = python_says(python,
                                       "import sys\n"
                                       "exec(open(sys.argv[1]).read(), {'__name__': 'snippet'})\n"
                                       "print(open('/proc/self/maps').read())",
                                       snippet, &why);
  if (maps.empty())
    give_up(ErrorCode::kInvalidArgument, fmt::format("the snippet fails in {}: {}", python,
                                                     why.empty() ? "it ends the interpreter" : why));
  std::vector<std::string> files;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    const size_t path = line.find('/');
    if (path == std::string::npos) continue;
    if (files.empty() || files.back() != line.substr(path)) files.push_back(line.substr(path));
  }
  return files;
}

int64_t cached_bytes(int file, size_t size) {
  void* map = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return 0;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present((size + page - 1) / page);
  int64_t pages = 0;
  if (mincore(map, size, present.data()) == 0)
    for (unsigned char bits : present) pages += bits & 1;
  munmap(map, size);
  return pages * static_cast<int64_t>(page);
}

// Every way begins with the files on disk alone, as a new container does. Returns the bytes that stay cached
// because other processes hold them.
int64_t drop_from_cache(const std::vector<std::string>& files) {
  int64_t kept = 0;
  for (const std::string& path : files) {
    const Descriptor file(path, O_RDONLY);
    struct stat status {};
    if (file.get() < 0 || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
      continue;
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    kept += cached_bytes(file.get(), static_cast<size_t>(status.st_size));
  }
  return kept;
}

TwoViews read_views(Observer& observer) {
  const Sample sample = observer.Read();
  if (sample.gap) give_up(ErrorCode::kIo, "the service is gone: " + sample.gap_reason);
  TwoViews views;
  views.process_bytes = sample.process.kernel_bytes;
  views.processes = sample.process.processes;
  if (sample.container) {
    views.has_container = true;
    views.container_bytes = sample.container->kernel_bytes;
    views.parts = *sample.container;
  }
  return views;
}

WayResult try_way(const std::string& way, const std::vector<std::string>& service, std::string& mechanism) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    give_up(ErrorCode::kIo, "no socket pair: " + std::generic_category().message(errno));
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  plimsoll::Command command;
  command.argv = service;
  command.standard_output = Output::kDiscard;
  command.descriptors = {{theirs.get(), 3}};
  Job job = Job::Start(command);
  theirs.close();
  expect_line(ours.get(), "ready", [] { check_interrupted(); });
  Observer observer(job.pid());

  WayResult result;
  result.way = way;
  result.before = read_views(observer);
  job.ResetPeak();
  result.peak = result.before;
  send_line(ours.get(), "go");
  expect_line(ours.get(), "done", [&] {
    check_interrupted();
    const Sample sample = observer.Read();
    if (!sample.gap)
      result.peak.process_bytes = std::max(result.peak.process_bytes, sample.process.kernel_bytes);
  });
  // The kernel's counters are batched, and a dying worker's pages take a moment.
  std::this_thread::sleep_for(milliseconds(300));
  result.after = read_views(observer);
  result.peak.container_bytes =
      std::max({job.PeakBytes(), result.before.container_bytes, result.after.container_bytes});
  result.peak.process_bytes = std::max(result.peak.process_bytes, result.after.process_bytes);
  job.Kill();
  mechanism = job.Wait().receipt.mechanism;
  return result;
}

std::string choose_snippet(const LabOptions& options, const Room& room, LabResult& result) {
  if (!options.snippet.empty()) {
    result.snippet = options.snippet;
    return room.write("snippet.py", read_file(options.snippet));
  }
  const std::string torch =
      options.stand_in ? "" : python_says(options.python, "import torch; print(torch.__version__, end='')");
  result.snippet = torch.empty() ? "a stand-in, because torch is absent" : "attention in torch " + torch;
  if (options.stand_in) result.snippet = "a stand-in for torch";
  return room.write("snippet.py", torch.empty() ? lab_stand_in_snippet : lab_torch_snippet);
}

std::string header(const LabResult& result) {
  return fmt::format(
      "fork-vs-spawn: {} in {}, kernel {}, container: {}\n"
      "Each way starts a new service in a container of its own; {} files are dropped from the page cache "
      "before it{}.\n\n",
      result.snippet, result.python, result.kernel, result.mechanism, result.files,
      result.still_cached_bytes > 0 ? fmt::format(" ({:.1f} MiB of them stay, held by other processes)",
                                                  static_cast<double>(result.still_cached_bytes) / (1 << 20))
                                    : "");
}

int fork_vs_spawn(const LabOptions& options) {
  catch_interrupts();
  const InterruptGuard guard;
  if (!options.svg.empty()) check_can_write(options.svg);
  LabResult result;
  result.python = python_says(options.python, "import sys; print('Python', sys.version.split()[0], end='')");
  if (result.python.empty())
    give_up(ErrorCode::kInvalidArgument,
            fmt::format("{} is not a Python that runs: name one with --python", options.python));
  utsname machine{};
  uname(&machine);
  result.kernel = machine.release;
  const Room room;
  const std::string snippet = choose_snippet(options, room, result);
  const std::string service = room.write("service.py", lab_service);
  const std::vector<std::string> files = mapped_files(options.python, snippet);
  result.files = static_cast<int64_t>(files.size());
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  for (const char* way : kWays) {
    result.still_cached_bytes = std::max(result.still_cached_bytes, drop_from_cache(files));
    result.ways.push_back(try_way(way, {options.python, service, way, snippet, self}, result.mechanism));
  }
  if (options.json) {
    JsonOutput().finish(lab_json(result));
  } else {
    std::string text = header(result) + lab_table(result) + "\n";
    for (const std::string& finding : lab_findings(result)) text += "- " + finding + "\n";
    print(text);
  }
  if (!options.svg.empty()) {
    NewFiles chart;
    chart.add(options.svg, {lab_svg(result)});
    chart.commit();
  }
  return 0;
}

}  // namespace

Command lab_command(Arguments parent) {
  Arguments arguments = parent.add_command("lab", "Experiments on this machine");
  arguments.require_command();
  arguments.footer("Example: plimsoll lab fork-vs-spawn");
  auto options = std::make_shared<LabOptions>();
  Arguments experiment = arguments.add_command(
      "fork-vs-spawn", "Where a job's memory goes: in process, forked, spawned, and spawned with reclaim");
  experiment.add_option("--python", options->python, "the interpreter").show_default();
  experiment.add_option("--snippet", options->snippet,
                        "a Python file of your own instead of the built-in one");
  experiment.add_flag("--stand-in", options->stand_in, "do not use torch even if it is there");
  experiment.add_option("--svg", options->svg, "write a chart").check(check_not_empty);
  add_json_option(experiment, options->json);
  experiment.footer("Example: plimsoll lab fork-vs-spawn --svg fork-vs-spawn.svg");
  return {arguments, [options] { return fork_vs_spawn(*options); }};
}

}  // namespace plimsoll::cli
