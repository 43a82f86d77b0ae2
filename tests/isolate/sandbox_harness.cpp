#include "isolate/sandbox_harness.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace plimsoll::test {
namespace {

struct Child {
  Sandbox* sandbox = nullptr;
  std::vector<char*> argv;
  std::vector<char*> environment;
  int input = -1;
  int output = -1;
  SandboxFailure failure;
};

int start(void* argument) {
  Child& child = *static_cast<Child*>(argument);
  setsid();
  if (child.input >= 0) dup2(child.input, 0);
  dup2(child.output, 1);
  dup2(child.output, 2);
  syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (child.sandbox != nullptr) {
    child.failure = child.sandbox->apply();
    if (child.failure.error != 0) _exit(125);
  }
  execve(child.argv[0], child.argv.data(), child.environment.data());
  child.failure = {errno, "exec", child.argv[0]};
  _exit(127);
}

}  // namespace

bool Ran::Succeeded() const {
  return failure.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Ran run(const std::vector<std::string>& argv, Sandbox* sandbox, int input) {
  Child child;
  child.sandbox = sandbox;
  child.input = input;
  for (const std::string& argument : argv) child.argv.push_back(const_cast<char*>(argument.c_str()));
  child.argv.push_back(nullptr);
  std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
  if (sandbox != nullptr) {
    for (const auto& [name, value] : sandbox->environment()) variables.push_back(name + "=" + value);
  }
  for (std::string& variable : variables) child.environment.push_back(variable.data());
  child.environment.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  child.output = ends[1];
  std::vector<char> stack(256 << 10);
  const int flags =
      CLONE_VM | CLONE_VFORK | SIGCHLD | (sandbox != nullptr ? static_cast<int>(sandbox->clone_flags()) : 0);
  const int pid = clone(start, stack.data() + stack.size(), flags, &child);
  const int error = errno;
  close(ends[1]);
  Ran ran;
  char buffer[4096];
  for (ssize_t count; pid > 0 && (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    ran.output.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  if (pid < 0) {
    ran.failure = std::string("clone: ") + strerror(error);
    return ran;
  }
  while (waitpid(pid, &ran.status, 0) < 0 && errno == EINTR) {
  }
  if (sandbox != nullptr) {
    sandbox->started();
    if (const auto status = sandbox->job_status()) ran.status = *status;
    ran.layers = sandbox->layers();
    ran.missing = sandbox->missing();
  }
  if (child.failure.error != 0) {
    ran.failure =
        std::string(child.failure.step) + " " + child.failure.path + ": " + strerror(child.failure.error);
  }
  return ran;
}

Ran run(const std::vector<std::string>& argv, const SandboxOptions& options) {
  Sandbox sandbox(options, argv[0]);
  return run(argv, &sandbox);
}

ScratchDirectory::ScratchDirectory() {
  // Beside /tmp, which a job has of its own: what is hidden there proves nothing.
  for (std::string pattern : {"/var/tmp/plimsoll-test-XXXXXX", "/tmp/plimsoll-test-XXXXXX"}) {
    if (mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
      return;
    }
  }
  throw std::runtime_error("no scratch directory");
}

ScratchDirectory::~ScratchDirectory() {
  sandbox::remove_tree(path_);
}

}  // namespace plimsoll::test
