// What a sandbox is made of where the kernel has less, what it refuses, and its parts.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "isolate/sandbox_harness.h"
#include "isolate/sandbox_init.h"
#include "isolate/sandbox_seccomp.h"
#include "plimsoll/error.h"

namespace plimsoll::test {
namespace {

namespace fs = std::filesystem;
using sandbox::Access;
using sandbox::KernelSupport;
using sandbox::View;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

KernelSupport everything() {
  KernelSupport support;
  support.no_new_privs = support.seccomp = true;
  support.landlock_abi = 6;
  support.namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET;
  return support;
}

SandboxOptions options_of(SandboxLevel level, bool network = false) {
  SandboxOptions options;
  options.level = level;
  options.network = network;
  return options;
}

// The message of the refusal; empty if there was none.
std::string refusal(const KernelSupport& support, bool network = false) {
  try {
    const Sandbox sandbox(options_of(SandboxLevel::kStrict, network), "", "", support);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotImplemented);
    return error.what();
  }
}

TEST(Sandbox, StrictIsGivenWhereEverythingIsThere) {
  EXPECT_EQ(refusal(everything()), "");
  const Sandbox sandbox(options_of(SandboxLevel::kStrict), "", "", everything());
  EXPECT_THAT(sandbox.missing(), IsEmpty());
  EXPECT_THAT(sandbox.layers(), AllOf(Contains("no_new_privs"), Contains("seccomp"), Contains("landlock 6"),
                                      Contains("mount namespace"), Contains("PID namespace"),
                                      Contains("IPC namespace"), Contains("network namespace")));
}

TEST(Sandbox, StrictIsRefusedWithoutAnyOneLayerAndNamesIt) {
  const auto without = [](auto change) {
    KernelSupport support = everything();
    change(support);
    return refusal(support);
  };
  EXPECT_THAT(without([](KernelSupport& s) { s.no_new_privs = false; }), HasSubstr("without no_new_privs"));
  EXPECT_THAT(without([](KernelSupport& s) { s.seccomp = false; }), HasSubstr("without seccomp"));
  EXPECT_THAT(without([](KernelSupport& s) { s.landlock_abi = 0; }), HasSubstr("without landlock"));
  EXPECT_THAT(without([](KernelSupport& s) { s.namespaces &= ~uint64_t{CLONE_NEWIPC}; }),
              HasSubstr("without IPC namespace"));
  EXPECT_THAT(without([](KernelSupport& s) { s.namespaces &= ~uint64_t{CLONE_NEWNET}; }),
              HasSubstr("without network namespace"));
  EXPECT_THAT(without([](KernelSupport& s) {
                s.namespaces = 0;
                s.namespaces_error = "clone: Operation not permitted";
              }),
              AllOf(HasSubstr("without mount namespace"), HasSubstr("without PID namespace"),
                    HasSubstr("clone: Operation not permitted")));
}

TEST(Sandbox, WithANetworkNoNetworkNamespaceIsNeededButScopesAre) {
  KernelSupport support = everything();
  support.namespaces &= ~uint64_t{CLONE_NEWNET};
  EXPECT_EQ(refusal(support, true), "");
  support.landlock_abi = 5;
  EXPECT_THAT(refusal(support, true), HasSubstr("landlock 6"));
  const Sandbox sandbox(options_of(SandboxLevel::kBestEffort, true), "", "", everything());
  EXPECT_EQ(sandbox.clone_flags() & CLONE_NEWNET, 0U);
}

TEST(Sandbox, BestEffortTakesWhatThereIsAndSaysSo) {
  const Sandbox sandbox(options_of(SandboxLevel::kBestEffort), "", "", KernelSupport{});
  EXPECT_EQ(sandbox.clone_flags(), 0U);
  EXPECT_THAT(sandbox.layers(), Not(Contains("seccomp")));
  EXPECT_THAT(sandbox.missing(), Contains(HasSubstr("without seccomp")));
  EXPECT_THAT(sandbox.missing(), Contains(HasSubstr("without landlock")));
}

TEST(Sandbox, ThisMachineGivesWhatItSays) {
  const SandboxOptions options = options_of(SandboxLevel::kBestEffort);
  const Ran ran = run({"/bin/sh", "-c", "grep -E 'NoNewPrivs|Seccomp:|CapEff' /proc/self/status"}, options);
  ASSERT_TRUE(ran.Succeeded()) << ran.failure << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(ran.output, HasSubstr("CapEff:\t0000000000000000"));
  const bool seccomp = sandbox::kernel_support().seccomp;
  EXPECT_THAT(ran.output, HasSubstr(seccomp ? "Seccomp:\t2" : "Seccomp:\t0"));
}

// On disk, where there is no mount namespace: the job works, and the directory is gone with the sandbox.
TEST(Sandbox, WithoutNamespacesAJobStillWorks) {
  KernelSupport support = sandbox::kernel_support();
  support.namespaces = 0;
  support.user_namespace = false;
  std::string directory;
  {
    Sandbox sandbox(options_of(SandboxLevel::kBestEffort), "", "", support);
    directory = sandbox.environment().front().second;
    const Ran ran =
        run({"/bin/sh", "-c", "mkdir a && echo x >a/b && : >/dev/null && pwd && chmod 0 a ."}, &sandbox);
    EXPECT_TRUE(ran.Succeeded()) << ran.failure << ran.output;
    EXPECT_EQ(ran.output, directory + "\n");
    EXPECT_TRUE(fs::exists(directory));
  }
  EXPECT_FALSE(fs::exists(directory));
}

TEST(TemporaryDirectory, LeftoversGoAndLivingOnesStay) {
  const ScratchDirectory scratch;
  const sandbox::TemporaryDirectory living(scratch.path());
  fs::create_directories(scratch.path("plimsoll-job-1-dead/a/b"));
  fs::create_directory(scratch.path("somebody-else"));
  EXPECT_EQ(sandbox::remove_leftover_directories(scratch.path()), 1);
  EXPECT_FALSE(fs::exists(scratch.path("plimsoll-job-1-dead")));
  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_TRUE(fs::exists(scratch.path("somebody-else")));
}

TEST(TemporaryDirectory, ATreeOfAnyDepthGoesAndLinksAreNotFollowed) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("kept")) << "x";
  const std::string top = scratch.path("top");
  fs::create_directory(top);
  ASSERT_EQ(symlink(scratch.path().c_str(), (top + "/link").c_str()), 0);
  // Deeper than a path can be long.
  int directory = open(top.c_str(), O_RDONLY | O_DIRECTORY);
  const std::string name(200, 'd');
  for (int depth = 0; depth < 40; ++depth) {
    ASSERT_EQ(mkdirat(directory, name.c_str(), 0700), 0);
    const int next = openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(next, 0);
    close(openat(next, "file", O_CREAT | O_WRONLY, 0));
    ASSERT_EQ(fchmod(directory, depth % 7 == 0 ? 0500 : 0700), 0);
    close(directory);
    directory = next;
  }
  close(directory);
  EXPECT_TRUE(sandbox::remove_tree(top));
  EXPECT_FALSE(fs::exists(top));
  EXPECT_TRUE(fs::exists(scratch.path("kept")));
}

TEST(View, ShowsWhatIsGivenAndKeepsTheLinksOnTheWay) {
  const ScratchDirectory scratch;
  fs::create_directories(scratch.path("real/inner"));
  fs::create_symlink("real", scratch.path("link"));
  fs::create_symlink("loop", scratch.path("loop"));
  View view;
  view.AddGiven(scratch.path("link/inner"), Access::kRead);
  view.AddGiven(scratch.path("real"), Access::kRead);
  view.AddGiven(scratch.path("real/inner"), Access::kWrite);
  view.AddIfPresent(scratch.path("loop"), Access::kRead);
  view.Simplify();
  ASSERT_EQ(view.paths().size(), 2U);
  EXPECT_EQ(view.paths()[0].path, scratch.path("real"));
  EXPECT_EQ(view.paths()[1].path, scratch.path("real/inner"));
  EXPECT_EQ(view.paths()[1].access, Access::kWrite);
  ASSERT_EQ(view.links().size(), 1U);
  EXPECT_EQ(view.links()[0].path, scratch.path("link"));
  EXPECT_TRUE(view.Shows(scratch.path("real/inner/file")));
  EXPECT_FALSE(view.Shows(scratch.path("realm")));
}

TEST(View, TheSystemWithoutItsSecrets) {
  View view = View::Default(false);
  view.Simplify();
  EXPECT_TRUE(view.Shows("/usr/bin/env"));
  for (const char* hidden : {"/etc/shadow", "/etc/ssl/private/key", "/root", "/home", "/var", "/run", "/tmp",
                             "/sys/fs/cgroup", "/etc/resolv.conf"}) {
    EXPECT_FALSE(view.Shows(hidden)) << hidden;
  }
}

TEST(Seccomp, TheProgramIsWellFormed) {
  for (const bool network : {false, true}) {
    for (const bool unix_sockets : {false, true}) {
      const auto program = sandbox::seccomp_program({network, unix_sockets});
      ASSERT_LT(program.size(), static_cast<size_t>(BPF_MAXINSNS));
      EXPECT_EQ(program.back().code, BPF_RET | BPF_K);
      for (size_t i = 0; i < program.size(); ++i) {
        if (BPF_CLASS(program[i].code) != BPF_JMP) continue;
        EXPECT_LT(i + 1 + std::max(program[i].jt, program[i].jf), program.size());
      }
    }
  }
}

TEST(Init, IsASmallProgram) {
  const std::string image = sandbox::init_image(false);
  EXPECT_EQ(image.substr(0, 4), "\177ELF");
  EXPECT_LT(image.size(), 512U);
}

}  // namespace
}  // namespace plimsoll::test
