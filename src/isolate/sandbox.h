// The sandbox around a job from a stranger: several layers of the kernel's, each of which holds alone.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "isolate/sandbox_directory.h"
#include "isolate/sandbox_kernel.h"
#include "isolate/sandbox_landlock.h"
#include "isolate/sandbox_mounts.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

// What apply() could not do. The texts live as long as the sandbox.
struct SandboxFailure {
  int error = 0;  // errno; 0: no failure
  const char* step = "";
  const char* path = "";  // "": it was not about a path
};

// For one job. Made in the parent, which prepares every byte; applied in the child; destroyed in the parent
// after the job's last process has ended, which removes what it had on disk.
class Sandbox {
 public:
  // `program`: absolute; made visible to the job if it is not. `working_directory`: must be visible to the
  // job; empty: ours if it is, otherwise the temporary directory.
  // Throws kNotImplemented for a strict sandbox that this machine cannot give, kInvalidArgument for paths
  // that do not exist or may not be given away.
  explicit Sandbox(const SandboxOptions& options, const std::string& program = "",
                   const std::string& working_directory = "");
  // With somebody else's idea of the kernel: for tests.
  Sandbox(const SandboxOptions& options, const std::string& program, const std::string& working_directory,
          const sandbox::KernelSupport& support);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // CLONE_NEW* for clone3. If CLONE_NEWPID is among them, see apply() and job_status().
  uint64_t clone_flags() const noexcept { return clone_flags_; }
  // The write end of the status pipe, close-on-exec, for apply(); -1: none is needed.
  int status_descriptor() const noexcept { return status_write_.get(); }

  // In the child, last before exec: system calls only. With CLONE_NEWPID it returns in ANOTHER process, the
  // job, and the child that clone3 made becomes the namespace's init (sandbox_init.h): it ends when the job
  // does and takes everything in the namespace along. `status_descriptor`: as above, or where the child has
  // moved it.
  SandboxFailure apply(int status_descriptor) const noexcept;
  SandboxFailure apply() const noexcept { return apply(status_write_.get()); }

  // For the parent, once the child runs: closes the write end, so that the pipe ends with the job.
  void started() noexcept;
  // With CLONE_NEWPID, after the child was reaped: the job's own wait status. Nothing: the job was killed
  // with its init, or there is no init; then the child's status is the job's.
  std::optional<int> job_status() noexcept;

  void report(Receipt& receipt) const;  // layers and what is missing

  // To be set in the job's environment: TMPDIR.
  const std::vector<std::pair<std::string, std::string>>& environment() const { return environment_; }
  // In force, such as "no_new_privs", "seccomp", "landlock 6", "network namespace".
  const std::vector<std::string>& layers() const { return layers_; }
  // Not in force on this machine, and what that means.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void ChooseLayers(const SandboxOptions& options, const sandbox::KernelSupport& support);
  void RefuseIfIncomplete(const sandbox::KernelSupport& support) const;
  void PrepareTemporary();
  void PrepareView(const SandboxOptions& options, const std::string& program);
  void PrepareLandlock(const SandboxOptions& options, int abi);
  void ChooseDirectory(const std::string& working_directory);
  void OpenStatusPipe();
  SandboxFailure Restrict() const noexcept;

  bool active_ = false;
  bool has_mounts_ = false;
  bool has_landlock_ = false;
  uint64_t clone_flags_ = 0;
  sandbox::IdentityMap identity_;
  sandbox::View view_;
  std::unique_ptr<sandbox::Mounts> mounts_;
  sandbox::Landlock landlock_;
  std::vector<sock_filter> filter_;
  std::string init_;
  std::string directory_;  // where the job starts; empty: where the child is
  std::unique_ptr<sandbox::TemporaryDirectory> temporary_;
  Descriptor status_read_, status_write_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::string> layers_;
  std::vector<std::string> missing_;
};

// Removes the temporary directories of sandboxes whose owners were killed.
void remove_sandbox_leftovers() noexcept;

}  // namespace plimsoll
