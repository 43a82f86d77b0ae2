// The sandbox around a job from a stranger: several layers of the kernel's, each of which holds alone.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "isolate/confinement.h"
#include "isolate/sandbox_directory.h"
#include "isolate/sandbox_kernel.h"
#include "isolate/sandbox_landlock.h"
#include "isolate/sandbox_mounts.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

// For one job. Destroyed in the parent after the job's last process has ended, which removes what it had on
// disk.
class Sandbox : public Confinement {
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
  ~Sandbox() override;

  // `status_descriptor`: that of the confinement, or where the child has moved it.
  SandboxFailure apply(int status_descriptor) const noexcept;
  SandboxFailure apply() const noexcept override { return apply(status_descriptor()); }

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
  SandboxFailure Restrict() const noexcept;

  bool active_ = false;
  bool has_mounts_ = false;
  bool has_landlock_ = false;
  sandbox::IdentityMap identity_;
  sandbox::View view_;
  std::unique_ptr<sandbox::Mounts> mounts_;
  sandbox::Landlock landlock_;
  std::vector<sock_filter> filter_;
  std::string directory_;  // where the job starts; empty: where the child is
  std::unique_ptr<sandbox::TemporaryDirectory> temporary_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<std::string> layers_;
  std::vector<std::string> missing_;
};

// Removes the temporary directories of sandboxes whose owners were killed.
void remove_sandbox_leftovers() noexcept;

}  // namespace plimsoll
