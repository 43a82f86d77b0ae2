// What a child does last before exec to shut itself in: the sandbox of a stranger (sandbox.h) or the
// enclosure of any job (enclosure.h). Made in the parent, which prepares every byte; applied in the child.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "isolate/sandbox_init.h"

namespace plimsoll {

// What apply() could not do. The texts live as long as the confinement.
struct SandboxFailure {
  int error = 0;  // errno; 0: no failure
  const char* step = "";
  const char* path = "";  // "": it was not about a path
};

class Confinement {
 public:
  Confinement() = default;
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;
  virtual ~Confinement() = default;

  // CLONE_NEW* for clone3. If CLONE_NEWPID is among them, see apply() and job_status().
  uint64_t clone_flags() const noexcept { return clone_flags_; }
  bool has_pid_namespace() const noexcept;
  // In the child, last before exec: system calls only. With an init (sandbox_init.h) it returns in ANOTHER
  // process, the job, and the child that clone3 made becomes the init.
  virtual SandboxFailure apply() const noexcept = 0;

  // For the parent, once the child runs: closes the write end of the status pipe, so that it ends with the
  // job.
  void started() noexcept { status_write_.reset(); }
  // With an init, after the job has ended: its own wait status. Nothing: the job was killed with its init, or
  // there is no init; then the child's status is the job's.
  std::optional<int> job_status() noexcept;
  // The write end of the status pipe, close-on-exec, for apply(); -1: none is needed.
  int status_descriptor() const noexcept { return status_write_.get(); }

 protected:
  // `stays`: the init goes on reaping when the job has ended, until it has no children left.
  void open_status_pipe(bool stays);
  int status_read() const noexcept { return status_read_.get(); }

  uint64_t clone_flags_ = 0;
  std::string init_;
  mutable sandbox::InitWord init_word_;

 private:
  Descriptor status_read_, status_write_;
};

}  // namespace plimsoll
