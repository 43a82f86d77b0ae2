#include <fmt/core.h>
#include <plimsoll/isolate.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "duration.h"
#include "files.h"
#include "interrupt.h"
#include "options.h"
#include "receipt.h"
#include "user_scope.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace plimsoll::cli {
namespace {

constexpr int kTimedOut = 124, kOurFailure = 125, kAtTheLimit = 137;

struct ExecOptions {
  std::vector<std::string> command, assignments;
  std::string limit, timeout, cpu_time, output_limit, grace = "2s", sandbox, directory, receipt_file;
  int64_t processes = 0;
  std::vector<std::string> requirements;
  bool clear_environment = false, json = false, quiet = false, bare = false, clean_leftovers = false;
  SandboxOptions sandbox_options;
};

Limits make_limits(const ExecOptions& options) {
  Limits limits;
  if (!options.limit.empty()) limits.memory_bytes = parse_bytes(options.limit);
  if (!options.timeout.empty()) limits.wall_time = parse_duration(options.timeout, "--timeout");
  if (!options.cpu_time.empty()) limits.cpu_time = parse_duration(options.cpu_time, "--cpu-time");
  if (!options.output_limit.empty())
    limits.output_bytes = parse_bytes(options.output_limit, "--output-limit");
  limits.processes = options.processes;
  limits.grace = parse_duration(options.grace, "--grace");
  limits.require_hold = !options.requirements.empty();
  return limits;
}

std::map<std::string, std::string> make_environment(const ExecOptions& options) {
  std::map<std::string, std::string> variables;
  const auto set = [&](std::string_view assignment) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string_view::npos) return false;
    variables[std::string(assignment.substr(0, equals))] = assignment.substr(equals + 1);
    return true;
  };
  const bool is_stranger = !options.sandbox.empty();
  if (is_stranger && !options.clear_environment) variables = plimsoll::HarmlessEnvironment();
  for (char** variable = environ; !options.clear_environment && !is_stranger && *variable != nullptr;
       ++variable)
    set(*variable);
  for (const std::string& assignment : options.assignments) {
    if (!set(assignment)) throw UsageError(fmt::format("--env: expected NAME=VALUE, found '{}'", assignment));
  }
  return variables;
}

// The job is in a session of its own, where the kernel stops nobody who reads a terminal that is not his: in
// the background of a shell it would take what is typed for the shell.
bool is_in_background() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);  // -1: no terminal, or not ours
  return foreground > 0 && foreground != ::getpgrp();
}

plimsoll::Command make_command(const ExecOptions& options) {
  plimsoll::Command command;
  command.argv = options.command;
  if (options.clear_environment || !options.assignments.empty())
    command.environment = make_environment(options);
  command.working_directory = options.directory;
  command.inherit_input = !is_in_background();
  if (options.json) command.standard_output = Output::kToError;
  command.bare = options.bare;
  command.clean_leftovers = options.clean_leftovers;
  command.sandbox = options.sandbox_options;
  if (!options.sandbox.empty())
    command.sandbox.level = options.sandbox == "strict" ? SandboxLevel::kStrict : SandboxLevel::kBestEffort;
  return command;
}

// Ctrl-C and the like end the job, not us: the receipt is still to come. A second one does not wait.
std::atomic<Job*> running{nullptr};
std::atomic<int> last_signal{0};
std::atomic<bool> stop_asked{false};

void ask_to_stop(int) {
  stop_asked.store(true);
}

void pass_on_signal(int signal) {
  last_signal.store(signal);
  if (Job* job = running.load()) job->Cancel();
}

class SignalsToJob {
 public:
  explicit SignalsToJob(Job& job) {
    running.store(&job);
    if (last_signal.load() != 0) job.Cancel();  // it came while the job was being started
  }
  SignalsToJob(const SignalsToJob&) = delete;
  SignalsToJob& operator=(const SignalsToJob&) = delete;
  ~SignalsToJob() { running.store(nullptr); }
};

void catch_signals() {
  struct sigaction action = {};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    action.sa_handler = signal == SIGTSTP ? ask_to_stop : pass_on_signal;
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup stays nohup
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaction(signal, &action, nullptr);
}

// Ctrl-Z reaches us, not the job in its own session: both stop, and go on together.
void stop_if_asked(Job& job) {
  if (!stop_asked.exchange(false)) return;
  job.Signal(SIGSTOP);
  struct sigaction usual = {}, ours = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &usual, &ours);
  ::raise(SIGTSTP);  // returns when we are continued
  ::sigaction(SIGTSTP, &ours, nullptr);
  job.Signal(SIGCONT);
}

Receipt wait(Job& job) {
  constexpr std::chrono::milliseconds kLook(100);
  const SignalsToJob forwarding(job);
  for (;;) {
    if (std::optional<Completed> completed = job.WaitFor(kLook)) return std::move(completed->receipt);
    stop_if_asked(job);
  }
}

int exit_code_of(const Receipt& receipt) {
  switch (receipt.ending) {
    case Ending::kMemoryLimit:
      return kAtTheLimit;
    case Ending::kWallTime:
    case Ending::kCpuTime:
      return kTimedOut;
    case Ending::kCancelled:
      return 128 + (last_signal.load() != 0 ? last_signal.load() : SIGINT);
    case Ending::kOutputLimit:
    case Ending::kProcessLimit:
      return kOurFailure;
    default:
      return receipt.exit_code;
  }
}

void write_receipt(const std::string& path, const Json& json) {
  NewFiles files;
  const std::string text = json.dump(1) + "\n";
  files.add(path, {text});
  files.commit();
}

// The job has run: what cannot be written to its file is at least shown.
void report(const ExecOptions& options, const Receipt& receipt) {
  const Json json = receipt_json(receipt);
  std::optional<Error> unwritten;
  if (!options.receipt_file.empty()) {
    try {
      write_receipt(options.receipt_file, json);
    } catch (const Error& error) {
      unwritten = error;
    }
  }
  if (options.json)
    JsonOutput().finish(json);
  else if (!options.quiet || unwritten)
    std::fputs(receipt_text(receipt).c_str(), stderr);  // nobody may be listening
  if (unwritten) throw Error(*unwritten);
}

int run(const ExecOptions& options) {
  if (options.command.empty())
    throw UsageError("exec: no command is given: plimsoll exec [options] -- COMMAND...");
  const Limits limits = make_limits(options);
  const plimsoll::Command command = make_command(options);
  try {
    if (!options.receipt_file.empty()) check_can_write(options.receipt_file);
    move_to_user_scope(limits.memory_bytes > 0 && !plimsoll::Unheld(command, limits).empty());
    catch_signals();
    if (!limits.require_hold && !options.quiet) {
      for (const std::string& sentence : plimsoll::Unheld(command, limits))
        std::fputs(fmt::format("plimsoll: cannot hold {}\n", sentence).c_str(), stderr);
    }
    Job job = Job::Start(command, limits);
    const Receipt receipt = wait(job);
    report(options, receipt);
    return exit_code_of(receipt);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw UsageError(error.what());
    std::fputs(fmt::format("plimsoll: {}\n", error.what()).c_str(), stderr);
    return start_failure_exit_code(error);
  }
}

void add_options(Arguments arguments, ExecOptions& options) {
  arguments.add_option("--limit", options.limit, "memory of the whole group, such as 256MiB")
      .check(check_not_empty);
  arguments.add_option("--timeout", options.timeout, "wall time, such as 30s").check(check_not_empty);
  arguments.add_option("--cpu-time", options.cpu_time, "user and system time of the whole group, such as 10s")
      .check(check_not_empty);
  arguments.add_option("--processes", options.processes, "processes and threads alive at the same time")
      .range(1, 1 << 22);
  arguments.add_option("--output-limit", options.output_limit, "stdout and stderr together, such as 10MB")
      .check(check_not_empty);
  arguments.add_option("--grace", options.grace, "between TERM and KILL").show_default();
  arguments.add_option("--env", options.assignments, "NAME=VALUE for the command's environment")
      .one_value_each();
  arguments.add_flag("--clear-env", options.clear_environment, "start with an empty environment");
  arguments.add_option("--directory", options.directory, "where the command starts").check(check_not_empty);
  arguments
      .add_option("--require", options.requirements,
                  "hold: refuse to start a job whose memory or processes the kernel cannot hold here")
      .one_of({"hold"});
  arguments.add_flag("--bare", options.bare,
                     "no namespaces: for commands that need setuid programs or change their own cgroups");
  arguments.add_flag("--clean-leftovers", options.clean_leftovers,
                     "remove what the command leaves: System V memory, files in memory, mounts");
  const Option sandbox =
      arguments
          .add_flag("--sandbox{best-effort}", options.sandbox,
                    "for commands from strangers; --sandbox=strict refuses where a layer is missing")
          .one_of({"best-effort", "strict"});
  arguments
      .add_option("--readable", options.sandbox_options.readable, "a path that the sandbox shows read-only")
      .one_value_each()
      .needs(sandbox);
  arguments.add_option("--writable", options.sandbox_options.writable, "a path that the sandbox lets change")
      .one_value_each()
      .needs(sandbox);
  arguments.add_flag("--network", options.sandbox_options.network, "the sandbox leaves the network open")
      .needs(sandbox);
  arguments.add_option("--receipt", options.receipt_file, "write the receipt as JSON to a file")
      .check(check_not_empty);
  arguments.add_flag("--quiet", options.quiet, "no receipt on stderr");
  arguments.add_flag(
      "--json", options.json,
      "print the receipt as one JSON object on stdout; the command's own stdout goes to stderr");
}

}  // namespace

Command exec_command(Arguments parent, const std::vector<std::string>& rest) {
  Arguments arguments =
      parent.add_command("exec", "Run a command in a clean process under limits: a receipt");
  auto options = std::make_shared<ExecOptions>();
  options->command = rest;
  add_options(arguments, *options);
  arguments.footer(
      "Example: plimsoll exec --limit 256MiB --timeout 30s -- python3 job.py\n"
      "Exit code: the command's own (128 + N if signal N ended it); 124 out of time, 125 our own failure or "
      "too\n"
      "much output, 126 not executable, 127 not found, 137 at the memory limit.");
  return {arguments, [options] { return run(*options); }};
}

}  // namespace plimsoll::cli
