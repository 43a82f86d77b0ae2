#include "watch_experiments.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "report.h"
#include "watch_trim.h"

namespace plimsoll::cli {
namespace {

std::string change(int64_t before, int64_t after) {
  const int64_t returned = before - after;
  return fmt::format("{} before, {} after: {} {}", human_bytes(before), human_bytes(after),
                     human_bytes(std::abs(returned)), returned >= 0 ? "came back" : "more than before");
}

}  // namespace

Experiment trim(Observer& observer, int pid) {
  Experiment experiment;
  experiment.name = "trim";
  experiment.before = observer.Account().sample;
  const std::string problem =
      experiment.before.gap ? "not done: " + experiment.before.gap_reason : trim_process(pid);
  experiment.after = observer.Account().sample;
  const int64_t before = experiment.before.process.kernel_bytes,
                after = experiment.after.process.kernel_bytes;
  experiment.finding = problem.empty() ? "malloc_trim: the process held " + change(before, after) : problem;
  if (problem.empty() && experiment.after.gap)
    experiment.finding = "what it gave back is not known: " + experiment.after.gap_reason;
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
