#include "isolate/guard.h"
#include "isolate/job_impl.h"
#include "isolate/leftovers.h"
#include "isolate/patience.h"
#include "isolate/request.h"

namespace plimsoll {

const char* ending_name(Ending ending) noexcept {
  switch (ending) {
    case Ending::kExited:
      return "exited";
    case Ending::kSignalled:
      return "signalled";
    case Ending::kMemoryLimit:
      return "memory limit";
    case Ending::kWallTime:
      return "wall time";
    case Ending::kCpuTime:
      return "CPU time";
    case Ending::kOutputLimit:
      return "output limit";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kProcessLimit:
      return "process limit";
  }
  return "unknown";
}

Job Job::Start(const Command& command, const Limits& limits) {
  check_limits(limits);
  check_command(command);
  fill_standard_descriptors();
  clean_up_once();
  return Job(std::make_unique<Impl>(command, limits, ensure_guard(surroundings())));
}

Job::Job(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

int Job::pid() const noexcept {
  return impl_->process.pid;
}

int Job::pidfd() const noexcept {
  return impl_->ended_descriptor();
}

Completed Job::Wait() {
  while (!impl_->finished && !impl_->wait_until(Impl::Clock::now() + std::chrono::hours(24))) {
  }
  return impl_->finish();
}

std::optional<Completed> Job::WaitFor(std::chrono::milliseconds timeout) {
  if (!impl_->finished && !impl_->wait_until(Impl::Clock::now() + within_the_clock(timeout)))
    return std::nullopt;
  return impl_->finish();
}

void Job::Kill() noexcept {
  impl_->cancel(true);
  if (impl_->owner != ::getpid()) return;
  const std::lock_guard lock(impl_->group_mutex);
  if (!impl_->finished) impl_->group.kill();
}

void Job::Cancel() noexcept {
  impl_->cancel(false);
}

void Job::Signal(int signal) noexcept {
  if (impl_->owner != ::getpid()) return;
  const std::lock_guard lock(impl_->group_mutex);
  if (!impl_->finished) impl_->group.signal(signal);
}

int64_t Job::MemoryBytes() const {
  const std::lock_guard lock(impl_->group_mutex);
  impl_->group.sample();
  return impl_->group.memory_bytes();
}

int64_t Job::PeakBytes() const {
  const std::lock_guard lock(impl_->group_mutex);
  return impl_->group.peak_since_reset_bytes();
}

void Job::ResetPeak() {
  const std::lock_guard lock(impl_->group_mutex);
  impl_->group.reset_peak();
}

double Job::CpuMs() const {
  const std::lock_guard lock(impl_->group_mutex);
  return impl_->group.cpu_ms().value_or(0);
}

std::string Job::CgroupDirectory() const {
  return impl_->group.memory_directory();
}

Receipt Job::Snapshot() const {
  return impl_->snapshot();
}

Completed Exec(const Command& command, const Limits& limits) {
  return Job::Start(command, limits).Wait();
}

std::vector<std::string> Unheld(const Command& command, const Limits& limits) {
  check_limits(limits);
  const auto around = surroundings();
  if (around->memory && (around->pids || limits.processes == 0)) return {};  // the usual, and quick
  Group group(limits, around);
  const std::unique_ptr<Enclosure> enclosure = enclosure_for(command, limits, group);
  const std::unique_ptr<Sandbox> sandbox = sandbox_for(command);
  const Confinement* confinement = sandbox ? static_cast<const Confinement*>(sandbox.get()) : enclosure.get();
  group.shut_in(confinement, enclosure ? &enclosure->options() : nullptr);
  return group.unheld();
}

int start_failure_exit_code(const std::exception& error) noexcept {
  const auto* start_error = dynamic_cast<const StartError*>(&error);
  if (start_error == nullptr || start_error->reason() == StartError::kOther) return 125;
  return start_error->reason() == StartError::kNotFound ? 127 : 126;
}

}  // namespace plimsoll
