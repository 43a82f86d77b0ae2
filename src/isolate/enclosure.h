// What any job is shut in, a stranger's or not: processes that cannot outlive it and cgroups that it cannot
// change. For strangers there is the sandbox on top (sandbox.h), which brings its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "isolate/confinement.h"
#include "isolate/sandbox_kernel.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

class Group;

struct EnclosureOptions {
  bool user = false;               // all of it within a user namespace, because the caller is not root
  bool processes = false;          // a PID namespace: the end of its init is the end of everybody in it
  bool read_only_cgroups = false;  // the mounted hierarchies, in a mount namespace
  // Above 0: System V memory, semaphores and queues and a /dev/shm of its own, none larger than this.
  int64_t memory_bytes = 0;
  int64_t tasks = 0;  // above 0: RLIMIT_NPROC, which within a user namespace counts the job's alone
  // Where no namespace can be had: a subreaper, so that orphans of the job stay its descendants.
  bool keeper = false;
  bool wanted_bare = false;  // the caller did not want namespaces
};

class Enclosure : public Confinement {
 public:
  explicit Enclosure(const EnclosureOptions& options);
  SandboxFailure apply() const noexcept override;

  const EnclosureOptions& options() const noexcept { return options_; }
  bool keeps() const noexcept { return options_.keeper; }
  int job_number() const noexcept { return init_word_.job; }  // of a keeper's child, once it runs
  // Readable when the job itself has ended while its keeper still reaps; -1: there is no keeper.
  int ended_descriptor() const noexcept { return options_.keeper ? status_read() : -1; }
  // After apply(): what it did without, because the kernel did not let it.
  bool lacks_proc() const noexcept { return lacks_proc_; }
  bool lacks_shared_memory() const noexcept { return lacks_shared_memory_; }
  bool lacks_system_v() const noexcept { return lacks_system_v_; }

 private:
  SandboxFailure close_cgroups() const noexcept;
  void bound_memory() const noexcept;
  SandboxFailure enter_as_job() const noexcept;

  const EnclosureOptions options_;
  sandbox::IdentityMap as_root_, as_self_;
  std::vector<std::string> cgroup_mounts_;
  std::string shared_memory_;                                  // options of the file system
  std::vector<std::pair<const char*, std::string>> settings_;  // of the IPC namespace
  mutable bool lacks_proc_ = false, lacks_shared_memory_ = false, lacks_system_v_ = false;
};

// What this kernel, in this place, gives this user. Found out by trying, once.
struct EnclosureSupport {
  bool namespaces = false;
  bool user = false;                  // only within a user namespace
  bool bounds_shared_memory = false;  // /dev/shm and System V get sizes
  bool counts_tasks = false;          // RLIMIT_NPROC is counted for each user namespace (Linux 5.14)
  std::string why_not;
};
const EnclosureSupport& enclosure_support();

// What to try for a job of `command` in `group`; null: nothing is to be had, or the sandbox has it already.
std::unique_ptr<Enclosure> enclosure_for(const Command& command, const Limits& limits, const Group& group);
// A mount namespace was refused to root: jobs are not given one any more.
void remember_open_cgroups() noexcept;

}  // namespace plimsoll
