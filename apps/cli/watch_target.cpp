#include "watch_target.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

extern char** environ;

namespace plimsoll::cli {
namespace {

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string ending_text(const Receipt& receipt) {
  if (receipt.signal != 0) return fmt::format("was ended by signal {}", receipt.signal);
  return fmt::format("exited with {}", receipt.exit_code);
}

}  // namespace

Target::Target(const WatchOptions& options, bool through_us, Sink sink)
    : options_(options), through_us_(through_us), sink_(std::move(sink)) {
  if (!options.pattern.empty()) counter_.emplace(options.pattern);
  if (options.iterations_fd >= 0) counter_.emplace();
}

plimsoll::Command Target::job_command() const {
  plimsoll::Command command;
  command.argv = options_.command;
  // A terminal is not handed on: the command is in a session of its own and could not read from it.
  command.inherit_input = ::isatty(STDIN_FILENO) != 1;
  if (!counter_ && !asked_) return command;
  command.environment = own_environment();
  if (asked_) asked_->ask(options_.command, *command.environment);
  if (!counter_) return command;
  if (options_.iterations_fd >= 0)
    (*command.environment)["PLIMSOLL_ITERATIONS_FD"] = std::to_string(options_.iterations_fd);
  else
    command.environment->emplace("PYTHONUNBUFFERED", "1");  // otherwise lines come 8 KiB at a time
  return command;
}

// Our stdout is for the report.
void Target::connect(plimsoll::Command& command) {
  if (pipe_output()) {
    output_.open();
    command.descriptors.emplace_back(output_.write_end(), STDOUT_FILENO);
  } else {
    command.descriptors.emplace_back(STDERR_FILENO, STDOUT_FILENO);
  }
  if (through_us_ && ::isatty(STDERR_FILENO) == 1) {
    error_.open();
    command.descriptors.emplace_back(error_.write_end(), STDERR_FILENO);
  }
  if (options_.iterations_fd >= 0) {
    iterations_.open();
    command.descriptors.emplace_back(iterations_.write_end(), options_.iterations_fd);
  }
}

void Target::start() {
  kill();
  if (!ours()) return;
  ending_.clear();
  if (!options_.no_ask && !asked_) asked_.emplace();
  plimsoll::Command command = job_command();
  connect(command);
  job_.emplace(Job::Start(command));
  for (Pipe* pipe : {&output_, &error_, &iterations_}) pipe->close_write();
}

bool Target::can_have_cgroup() {
  plimsoll::Command nothing;
  nothing.argv = {"/proc/self/exe", "--version"};
  nothing.standard_output = nothing.standard_error = Output::kDiscard;
  Job job = Job::Start(nothing);
  const bool has_one = !job.CgroupDirectory().empty();
  job.Kill();
  job.Wait();
  return has_one;
}

void Target::kill() {
  if (!job_) return;
  job_->Kill();
  job_->Wait();
  read_all();
  job_.reset();
}

int Target::pid() const {
  return job_ ? job_->pid() : options_.pid;
}

bool Target::counts_iterations() const {
  return counter_.has_value();
}

int64_t Target::iteration() const {
  return counter_ && counter_->count() > 0 ? counter_->count() : -1;
}

void Target::add_descriptors(std::vector<pollfd>& descriptors, bool with_output) const {
  for (const Pipe* pipe : {&output_, &error_, &iterations_})
    if (pipe->read_end() >= 0 && (with_output || pipe == &iterations_))
      descriptors.push_back({pipe->read_end(), POLLIN, 0});
  if (job_) descriptors.push_back({job_->pidfd(), POLLIN, 0});
}

void Target::read_all(bool with_output) {
  constexpr int kTurns =
      4;  // a pipe holds less; a command that never stops writing must not keep us from sampling
  for (Pipe* pipe : {&output_, &error_, &iterations_}) {
    if (!with_output && pipe != &iterations_) continue;
    for (int turn = 0; turn < kTurns && pipe->read_end() >= 0; ++turn) {
      bool ended = false;
      const std::string bytes = pipe->read_some(ended);
      if (counter_ && (pipe == &iterations_ || (pipe == &output_ && !options_.pattern.empty())))
        ended ? counter_->finish() : counter_->add(bytes);
      if (pipe != &iterations_ && !bytes.empty()) sink_(bytes);
      if (ended) pipe->close_both();
      if (bytes.empty()) break;
    }
  }
}

bool Target::job_ended() {
  if (!job_) return false;
  pollfd ended = {job_->pidfd(), POLLIN, 0};
  if (::poll(&ended, 1, 0) <= 0) return false;
  ending_ = ending_text(job_->Wait().receipt);
  read_all();
  job_.reset();
  return true;
}

}  // namespace plimsoll::cli
