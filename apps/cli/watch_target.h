// The process that is watched: one that is already there, or a command that we start and that dies with us.
#pragma once

#include <plimsoll/isolate.h>
#include <plimsoll/observe.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch_ask.h"
#include "watch_iterations.h"
#include "watch_options.h"
#include "watch_pipe.h"

namespace plimsoll::cli {

class Target {
 public:
  using Sink = std::function<void(std::string_view)>;  // what the command prints, if it comes through us

  // `through_us`: the command's stdout and stderr go to `sink`; otherwise its stdout goes to our stderr.
  // Throws UsageError for a wrong pattern. Starts nothing yet.
  Target(const WatchOptions& options, bool through_us, Sink sink);

  // Throws what Job::Start throws. A second start ends the first job.
  void start();
  void kill();  // and waits; nothing for a process that is not ours

  // Whether a job gets a memory cgroup of its own on this machine: one that does nothing is started to see.
  static bool can_have_cgroup();
  int pid() const;
  bool ours() const { return !options_.command.empty(); }
  std::string cgroup_directory() const { return job_ ? job_->CgroupDirectory() : std::string(); }
  // Where runtimes that were asked write what they hold; empty: none was.
  std::string told_directory() const { return asked_ ? asked_->directory() : std::string(); }
  // -1: none is counted or none was seen.
  int64_t iteration() const;
  bool counts_iterations() const;

  // Descriptors to wait for, and what to do when one is readable. Not `with_output`: what the command prints
  // stays where it is, and sooner or later the command waits.
  void add_descriptors(std::vector<pollfd>& descriptors, bool with_output) const;
  void read_all(bool with_output = true);  // whatever is there now
  bool job_ended();
  // "exited with 3", "killed by signal 9"; empty while it runs or if it is not ours.
  const std::string& ending() const { return ending_; }

 private:
  plimsoll::Command job_command() const;
  void connect(plimsoll::Command& command);
  bool pipe_output() const { return through_us_ || !options_.pattern.empty(); }

  const WatchOptions& options_;
  const bool through_us_;
  const Sink sink_;
  std::optional<AskedRuntimes> asked_;
  std::optional<IterationCounter> counter_;
  Pipe output_, error_, iterations_;
  std::optional<Job> job_;
  std::string ending_;
};

}  // namespace plimsoll::cli
