#include "isolate/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fail.h"
#include "isolate/sandbox_init.h"
#include "isolate/sandbox_privileges.h"
#include "isolate/sandbox_seccomp.h"
#include "isolate/sandbox_syscall.h"

namespace plimsoll {
namespace {

using namespace sandbox;  // NOLINT(google-build-using-namespace)

constexpr int64_t kTemporaryBytes = int64_t{1} << 30;
constexpr int kLandlockWithScopes = 6;

const char* const kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
// Of everybody's /proc, where the job has none of its own.
const char* const kSharedProc[] = {"/proc/cpuinfo",
                                   "/proc/meminfo",
                                   "/proc/stat",
                                   "/proc/uptime",
                                   "/proc/loadavg",
                                   "/proc/version",
                                   "/proc/filesystems",
                                   "/proc/sys/kernel/osrelease",
                                   "/proc/sys/vm/overcommit_memory"};

bool exists(const char* path) {
  return ::access(path, F_OK) == 0;
}

}  // namespace

Sandbox::Sandbox(const SandboxOptions& options, const std::string& program,
                 const std::string& working_directory)
    : Sandbox(options, program, working_directory,
              options.level == SandboxLevel::kNone ? KernelSupport{} : kernel_support()) {}

Sandbox::Sandbox(const SandboxOptions& options, const std::string& program,
                 const std::string& working_directory, const KernelSupport& support) {
  if (options.level == SandboxLevel::kNone) return;
  active_ = true;
  ChooseLayers(options, support);
  if (options.level == SandboxLevel::kStrict) RefuseIfIncomplete(support);
  PrepareView(options, program);
  PrepareTemporary();
  ChooseDirectory(working_directory);
  if (has_landlock_) PrepareLandlock(options, support.landlock_abi);
  if (support.seccomp) filter_ = seccomp_program({options.network, has_mounts_});
  if ((clone_flags_ & CLONE_NEWUSER) != 0) identity_ = identity_map();
  if (has_pid_namespace()) open_status_pipe(false);
}

Sandbox::~Sandbox() = default;

void Sandbox::ChooseLayers(const SandboxOptions& options, const KernelSupport& support) {
  const auto choose = [&](bool present, std::string layer, const char* meaning) {
    if (present) {
      layers_.push_back(std::move(layer));
    } else {
      missing_.push_back(fmt::format("sandbox without {}: {}", layer, meaning));
    }
    return present;
  };
  choose(support.no_new_privs, "no_new_privs", "setuid programs give their rights");
  layers_.emplace_back("no capabilities");
  choose(support.seccomp, "seccomp", "every system call of the kernel is open to the job");
  has_landlock_ = choose(
      support.landlock_abi > 0,
      support.landlock_abi > 0 ? fmt::format("landlock {}", support.landlock_abi) : std::string("landlock"),
      "files are guarded by the mount namespace and ordinary permissions alone");
  has_mounts_ = choose((support.namespaces & CLONE_NEWNS) != 0, "mount namespace",
                       "names and sizes of files outside can be seen, temporary files are on disk");
  choose((support.namespaces & CLONE_NEWPID) != 0, "PID namespace",
         "other processes can be seen and, before landlock 6, signalled");
  choose((support.namespaces & CLONE_NEWIPC) != 0, "IPC namespace", "System V shared memory is shared");
  if (!options.network) {
    choose((support.namespaces & CLONE_NEWNET) != 0, "network namespace",
           "the network is closed by seccomp and landlock alone");
  } else if (support.landlock_abi < kLandlockWithScopes) {
    missing_.emplace_back("sandbox without landlock 6: abstract sockets outside can be connected to");
  }
  clone_flags_ = support.namespaces;
  if (options.network) clone_flags_ &= ~static_cast<uint64_t>(CLONE_NEWNET);
  if (support.user_namespace && clone_flags_ != 0) {
    clone_flags_ |= CLONE_NEWUSER;
    layers_.emplace_back("user namespace");
  }
}

void Sandbox::RefuseIfIncomplete(const KernelSupport& support) const {
  if (missing_.empty()) return;
  std::string what;
  for (const std::string& layer : missing_) what += (what.empty() ? "" : "; ") + layer;
  const std::string reason =
      support.namespaces_error.empty() ? "" : fmt::format(" (namespaces: {})", support.namespaces_error);
  fail(
      ErrorCode::kNotImplemented,
      "strict sandbox: this machine cannot give all of it: {}{}; ask for the best it has (--sandbox), or run "
      "where user namespaces, Landlock and seccomp are permitted",
      what, reason);
}

void Sandbox::PrepareTemporary() {
  if (has_mounts_) {
    mounts_ = std::make_unique<Mounts>(kTemporaryBytes);
    mounts_->Show(view_);
    environment_.emplace_back("TMPDIR", "/tmp");
    layers_.emplace_back("temporary files in memory");
  } else {
    temporary_ = std::make_unique<TemporaryDirectory>(temporary_parent());
    environment_.emplace_back("TMPDIR", temporary_->path());
    layers_.emplace_back("temporary directory of its own");
  }
}

void Sandbox::PrepareView(const SandboxOptions& options, const std::string& program) {
  view_ = View::Default(options.network);
  for (const std::string& path : options.readable) view_.AddGiven(path, Access::kRead);
  for (const std::string& path : options.writable) view_.AddGiven(path, Access::kWrite);
  if (!program.empty()) view_.AddIfPresent(program, Access::kRead);
  view_.Simplify();
}

void Sandbox::PrepareLandlock(const SandboxOptions& options, int abi) {
  landlock_ = Landlock(abi, options.network);
  for (const VisiblePath& path : view_.paths()) landlock_.Permit(path.path, path.access);
  for (const char* device : kDevices) {
    if (exists(device)) landlock_.Permit(device, Access::kDevice);
  }
  if (has_mounts_) {  // nothing that is not the job's can be reached from its root
    landlock_.Permit("/", Access::kList);
    landlock_.Permit("/proc", Access::kRead);
    landlock_.Permit("/tmp", Access::kWrite);
    landlock_.Permit("/dev/shm", Access::kWrite);
  } else {
    for (const char* file : kSharedProc) {
      if (exists(file)) landlock_.Permit(file, Access::kRead);
    }
    landlock_.PermitOwnProcess();
    landlock_.Permit(temporary_->path(), Access::kWrite);
  }
}

void Sandbox::ChooseDirectory(const std::string& working_directory) {
  const std::string& temporary = environment_.front().second;
  std::error_code error;
  const std::string wanted =
      working_directory.empty() ? std::filesystem::current_path(error).string() : working_directory;
  const std::string resolved = resolve(wanted);
  if (!resolved.empty() && view_.Shows(resolved)) {
    directory_ = resolved;
  } else if (working_directory.empty() || wanted == temporary || resolved == temporary) {
    directory_ = temporary;
  } else {
    fail(
        ErrorCode::kInvalidArgument,
        "sandbox: working directory '{}' is not visible to the job; add it to the readable or writable paths",
        working_directory);
  }
}

void Sandbox::report(Receipt& receipt) const {
  receipt.sandbox = layers_;
  receipt.cannot_promise.insert(receipt.cannot_promise.end(), missing_.begin(), missing_.end());
}

SandboxFailure Sandbox::apply(int status_descriptor) const noexcept {
  if (!active_) return {};
  const char* path = "";
  int result = 0;
  if ((clone_flags_ & CLONE_NEWUSER) != 0) result = apply_identity_map(identity_);
  if (result < 0) return {-result, "user namespace", ""};
  if (mounts_ != nullptr) result = mounts_->Apply(&path);
  if (result < 0) return {-result, "mount namespace", path};
  if (!directory_.empty()) result = static_cast<int>(raw_syscall(SYS_chdir, directory_.c_str()));
  if (result < 0) return {-result, "working directory", directory_.c_str()};
  result = forbid_core_dumps();
  if (result < 0) return {-result, "core dumps", ""};
  // From here on in the job alone. The init must keep what the job loses, or the job could look into it:
  // until it has called exec it still shares the caller's memory and descriptors.
  if (has_pid_namespace()) result = become_init(init_, &init_word_, status_descriptor, true);
  if (result < 0) return {-result, "PID namespace", ""};
  return Restrict();
}

SandboxFailure Sandbox::Restrict() const noexcept {
  const char* path = "";
  // Built while all paths can still be opened.
  const int ruleset = has_landlock_ ? landlock_.Build(&path) : 0;
  if (ruleset < 0) return {-ruleset, "landlock", path};
  int result = drop_capabilities();
  if (result < 0) return {-result, "capabilities", ""};
  result = set_no_new_privileges();
  if (result < 0) return {-result, "no_new_privs", ""};
  if (has_landlock_) result = Landlock::Restrict(ruleset);
  if (result < 0) return {-result, "landlock", ""};
  if (!filter_.empty()) result = seccomp_apply(filter_);
  if (result < 0) return {-result, "seccomp", ""};
  return {};
}

void remove_sandbox_leftovers() noexcept {
  try {
    remove_leftover_directories(temporary_parent());
  } catch (const std::exception&) {  // out of memory: the next start does it
  }
}

}  // namespace plimsoll
