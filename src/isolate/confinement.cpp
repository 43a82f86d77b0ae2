#include "isolate/confinement.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "isolate/sandbox_init.h"

namespace plimsoll {
namespace {

constexpr int kLowestStatusDescriptor = 64;  // out of the way of what the job is given

}  // namespace

bool Confinement::has_pid_namespace() const noexcept {
  return (clone_flags_ & CLONE_NEWPID) != 0;
}

void Confinement::open_status_pipe(bool stays) {
  init_ = sandbox::init_image(stays);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    fail(ErrorCode::kIo, "cannot create a pipe for a job's init: {}", std::strerror(errno));
  }
  status_read_.reset(ends[0]);
  status_write_.reset(ends[1]);
  const int moved = ::fcntl(ends[1], F_DUPFD_CLOEXEC, kLowestStatusDescriptor);
  if (moved >= 0) status_write_.reset(moved);  // otherwise few descriptors are allowed: stays where it is
}

std::optional<int> Confinement::job_status() noexcept {
  int status = 0;
  if (!status_read_ || ::read(status_read_.get(), &status, sizeof(status)) != sizeof(status))
    return std::nullopt;
  return status;
}

}  // namespace plimsoll
