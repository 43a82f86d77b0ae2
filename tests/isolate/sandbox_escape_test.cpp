// Escape attempts. Each is shown to succeed without a sandbox where this user may do it at all, and to fail
// in every form that the sandbox can take.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolate/sandbox_world.h"
#include "support/places.h"

namespace plimsoll::test {
namespace {

enum Proof {
  kSucceedsOutside,      // for every user
  kSucceedsForRoot,      // for others it may or may not
  kDependsOnTheMachine,  // kernel options, /dev, resource limits
};

// Where the sandbox is made of less than this machine has.
enum Holds {
  kAlways,
  kWithNamespaces,  // Landlock and seccomp alone do not stop it, as docs/sandbox.md says
};

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  Proof proof = kSucceedsOutside;
  Holds holds = kAlways;
  const char* label = "";                           // two attempts of one name
  std::vector<std::string> arguments_outside = {};  // where they differ
};

void PrintTo(const Case& attempt, std::ostream* stream) {
  *stream << attempt.name;
}

std::vector<Case> cases() {
  return {
      // The network
      {"connect_tcp", {"{tcp}"}},
      {"listen_tcp", {}, kDependsOnTheMachine},
      {"send_udp", {"{udp}"}},
      {"raw_socket", {}, kSucceedsForRoot},
      {"packet_socket", {}, kSucceedsForRoot},
      {"netlink_socket", {}},
      {"other_family", {}},
      {"connect_name", {"{abstract}"}, kSucceedsOutside, kAlways, "abstract"},
      {"connect_name", {"{socket}"}, kSucceedsOutside, kAlways, "path"},
      {"send_from_pair", {"{abstract_datagram}"}, kSucceedsOutside, kAlways, "abstract"},
      {"send_from_pair", {"{datagram}"}, kSucceedsOutside, kAlways, "path"},
      // Other processes
      {"signal_it", {"{pid}"}},
      {"signal_thread", {"{pid}"}},
      {"signal_queue", {"{pid}"}},
      {"signal_descriptor", {"{pid}"}},
      {"signal_by_owner", {"{pid}"}, kSucceedsOutside, kWithNamespaces},
      {"trace", {"{pid}"}, kSucceedsForRoot},
      {"read_memory", {"{pid}", "{address}"}, kSucceedsForRoot},
      {"write_memory", {"{pid}", "{address}"}, kSucceedsForRoot},
      {"read_memory_file", {"{pid}", "{address}"}, kSucceedsForRoot},
      {"read_environment", {"{pid}"}, kSucceedsForRoot},
      {"read_command_line", {"{pid}"}},
      {"open_descriptor", {"{pid}", "{descriptor}"}, kSucceedsForRoot},
      {"take_descriptor", {"{pid}", "{descriptor}"}, kSucceedsForRoot},
      {"compare", {"{pid}"}, kDependsOnTheMachine},
      {"change_limit", {"{pid}"}, kSucceedsOutside, kWithNamespaces},
      {"change_priority", {"{pid}"}, kSucceedsOutside, kWithNamespaces},
      {"change_scheduler", {"{pid}"}, kSucceedsOutside, kWithNamespaces},
      // Reading
      {"read_file", {"{secret}"}},
      {"open_to_read", {"/etc/shadow"}, kSucceedsForRoot, kAlways, "shadow"},
      {"see", {"{secret}"}, kSucceedsOutside, kWithNamespaces},
      {"list", {"{outside}"}},
      {"list", {"/root"}, kSucceedsForRoot, kAlways, "root"},
      {"read_by_dots", {"{secret}"}},
      {"read_through_own_root", {"{secret}"}},
      {"read_through_init_root", {"{secret}"}, kDependsOnTheMachine},
      {"read_through_own_directory", {"{secret}"}},
      {"read_through_link", {"{secret}"}},
      {"run_program", {"{program}"}},
      {"inherited_descriptor",
       {},
       kDependsOnTheMachine},  // Job and the harness close them with or without one
      {"open_by_number", {"{secret}"}, kSucceedsForRoot},
      {"leave_chroot", {"{secret}"}, kSucceedsForRoot},
      // Writing
      {"open_to_write", {"{secret}"}, kSucceedsOutside, kAlways, "outside"},
      {"open_to_write", {"{text}"}, kSucceedsOutside, kAlways, "readable"},
      {"open_to_write", {"/proc/sys/kernel/core_pattern"}, kSucceedsForRoot, kAlways, "core_pattern"},
      {"open_to_write", {"/proc/sysrq-trigger"}, kDependsOnTheMachine, kAlways, "sysrq"},
      {"create_file", {"{outside}/new"}},
      {"create_file", {"{readable}/new"}, kSucceedsOutside, kAlways, "readable"},
      {"create_file", {"/usr/plimsoll-test"}, kDependsOnTheMachine, kAlways, "usr", {"{outside}/new"}},
      {"make_directory", {"{outside}"}},
      {"truncate_file", {"{secret}"}},
      {"open_and_truncate", {"{text}"}},
      {"remove_file", {"{secret}"}, kSucceedsOutside, kAlways, "outside"},
      {"remove_file", {"{text}"}, kSucceedsOutside, kAlways, "readable"},
      {"change_mode", {"{secret}"}, kSucceedsOutside, kWithNamespaces},
      {"change_times", {"{text}"}, kSucceedsOutside, kWithNamespaces},
      {"change_attribute", {"{text}"}, kDependsOnTheMachine, kWithNamespaces},
      {"rename_file", {"{secret}", "{writable}/stolen"}, kSucceedsOutside, kAlways, "in"},
      {"rename_out", {"{outside}"}, kDependsOnTheMachine},
      {"link_file", {"{secret}", "{writable}/linked"}, kSucceedsOutside, kAlways, "in"},
      {"link_file", {"{text}", "{writable}/readable"}, kSucceedsOutside, kAlways, "readable"},
      // Shared memory
      {"attach_shared_memory", {"{shared_memory_key}"}, kSucceedsOutside, kWithNamespaces},
      {"attach_shared_memory_by_id", {"{shared_memory_id}"}, kSucceedsOutside, kWithNamespaces},
      {"open_shared_memory", {"{shared_memory}"}},
      {"open_message_queue", {"{queue}"}, kDependsOnTheMachine, kWithNamespaces},
      // Mounts and namespaces
      {"mount_memory", {}, kSucceedsForRoot, kAlways, "", {"{outside}"}},
      {"open_file_system", {}, kSucceedsForRoot},
      {"copy_mounts", {}, kSucceedsForRoot},
      {"change_root", {}, kSucceedsForRoot},
      {"unshare_user", {}, kDependsOnTheMachine},
      {"unshare_mounts", {}, kSucceedsForRoot},
      {"unshare_time", {}, kDependsOnTheMachine},
      {"clone_user", {}, kDependsOnTheMachine},
      {"clone_network", {}, kDependsOnTheMachine},
      {"clone3_user", {}, kDependsOnTheMachine},
      {"enter_namespace", {}, kSucceedsForRoot},
      // Devices, cgroups, terminals
      {"make_block_device", {}, kSucceedsForRoot, kAlways, "", {"{outside}"}},
      {"make_memory_device", {}, kSucceedsForRoot, kAlways, "", {"{outside}"}},
      {"open_device", {}, kDependsOnTheMachine},
      {"leave_cgroup", {"{cgroup}"}, kDependsOnTheMachine},
      {"type_into_terminal", {}, kSucceedsForRoot},
      // Privileges
      {"raise_capabilities", {}, kSucceedsForRoot},
      {"become_another_user", {}, kSucceedsForRoot},
      {"run_setuid_program", {"{setuid}"}, kSucceedsForRoot},
      {"dump_core", {}, kDependsOnTheMachine, kAlways, "", {"{outside}"}},
      // The kernel
      {"load_bpf", {}, kDependsOnTheMachine},
      {"open_performance_counter", {}, kDependsOnTheMachine},
      {"use_keys", {}, kDependsOnTheMachine},
      {"add_key", {}, kDependsOnTheMachine},
      {"set_up_io_uring", {}, kDependsOnTheMachine},
      {"open_user_fault", {}, kDependsOnTheMachine},
      {"change_personality", {}},
      {"reboot", {}, kSucceedsForRoot},
      {"load_module", {}, kDependsOnTheMachine},
      {"load_kernel", {}, kDependsOnTheMachine},
      {"swap_on", {}, kDependsOnTheMachine},
      {"account", {}, kDependsOnTheMachine},
      {"set_host_name", {}, kSucceedsForRoot},
      {"read_kernel_log", {}, kDependsOnTheMachine},
      {"old_system_calls", {}, kDependsOnTheMachine},
      {"run_from_memory", {"read_file", "{secret}"}},
  };
}

// Those that would change something of this machine's if they succeeded are not tried outside.
std::vector<Case> cases_inside_only() {
  return {
      {"look_into_init", {}},       {"clone_sibling", {}},   {"unmount", {}},
      {"mount_again_writable", {}}, {"clear_read_only", {}}, {"other_numbers", {}},
  };
}

struct Form {
  const char* name;
  uint64_t namespaces;  // of those that the machine has
  bool landlock;
};
constexpr Form kForms[] = {
    {"whole", ~uint64_t{0}, true},
    {"without Landlock", ~uint64_t{0}, false},
    {"without namespaces", 0, true},
};

class Escape : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { world_ = std::make_unique<World>(); }
  static void TearDownTestSuite() { world_.reset(); }

  static std::vector<std::string> Program(const Case& attempt, const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {test_program("sandbox_escape"), attempt.name};
    for (const std::string& argument : arguments) argv.push_back(world_->Expand(argument));
    return argv;
  }

  static Ran Outside(const Case& attempt) {
    world_->Restore();
    const auto& other = attempt.arguments_outside;
    return run(Program(attempt, other.empty() ? attempt.arguments : other), nullptr, world_->terminal());
  }

  static Ran Inside(const Case& attempt, const Form& form) {
    world_->Restore();
    sandbox::KernelSupport support = sandbox::kernel_support();
    support.namespaces &= form.namespaces;
    support.user_namespace = support.user_namespace && support.namespaces != 0;
    if (!form.landlock) support.landlock_abi = 0;
    SandboxOptions options;
    options.level = SandboxLevel::kBestEffort;
    options.readable = {world_->path("readable")};
    options.writable = {world_->path("writable")};
    Sandbox sandbox(options, test_program("sandbox_escape"), "", support);
    return run(Program(attempt, attempt.arguments), &sandbox, world_->terminal());
  }

  static void ExpectRefused(const Case& attempt) {
    const bool has_namespaces = (sandbox::kernel_support().namespaces & CLONE_NEWNS) != 0;
    int tried = 0;
    for (const Form& form : kForms) {
      const bool bare = form.namespaces == 0 || !has_namespaces;
      if (bare && attempt.holds == kWithNamespaces) continue;
      if (bare && (!form.landlock || sandbox::kernel_support().landlock_abi < 6)) continue;
      ++tried;
      const Ran ran = Inside(attempt, form);
      EXPECT_EQ(ran.failure, "") << form.name;
      // Refused, or ended for trying; 2 would mean that nothing was tried.
      EXPECT_TRUE((WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == 1) ||
                  (WIFSIGNALED(ran.status) && WTERMSIG(ran.status) == SIGSYS))
          << form.name << ": status " << ran.status << ", " << ran.output;
    }
    if (tried == 0) GTEST_SKIP() << "no mount namespace and no Landlock 6 here: not stopped, and said so";
  }

  static std::unique_ptr<World> world_;
};
std::unique_ptr<World> Escape::world_;

TEST_P(Escape, Fails) {
  const Case& attempt = GetParam();
  const Ran outside = Outside(attempt);
  const bool must =
      attempt.proof == kSucceedsOutside || (attempt.proof == kSucceedsForRoot && geteuid() == 0);
  if (must) {
    EXPECT_TRUE(outside.Succeeded()) << "proves nothing: it fails without a sandbox too: " << outside.output;
  } else if (!outside.Succeeded()) {
    std::printf("not possible here without a sandbox either: %s", outside.output.c_str());
  }
  ExpectRefused(attempt);
}

class EscapeInsideOnly : public Escape {};
TEST_P(EscapeInsideOnly, Fails) {
  ExpectRefused(GetParam());
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const std::string label = info.param.label;
  return info.param.name + (label.empty() ? "" : "_" + label);
}
INSTANTIATE_TEST_SUITE_P(Attempt, Escape, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Attempt, EscapeInsideOnly, testing::ValuesIn(cases_inside_only()), name_of);

}  // namespace
}  // namespace plimsoll::test
