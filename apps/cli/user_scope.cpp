#include "user_scope.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace plimsoll::cli {
namespace {

constexpr const char* kTried = "PLIMSOLL_SCOPE";  // in our environment: this is the second start

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    arguments.push_back(text.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return arguments;
}

std::vector<char*> scope_of(const std::vector<std::string>& command) {
  static const char* const kScope[] = {"systemd-run", "--user", "--scope",      "--quiet",
                                       "--collect",   "-p",     "Delegate=yes", "--"};
  std::vector<char*> arguments;
  for (const char* word : kScope) arguments.push_back(const_cast<char*>(word));
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// A manager that answers, and a scope that starts.
bool gives_scopes() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime == nullptr || ::access((std::string(runtime) + "/systemd/private").c_str(), F_OK) != 0)
    return false;
  const std::vector<std::string> nothing = {"true"};
  std::vector<char*> arguments = scope_of(nothing);
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  for (const int stream : {0, 1, 2})
    ::posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], &quiet, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&quiet);
  int status = -1;
  while (error == 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return error == 0 && status == 0;
}

}  // namespace

void move_to_user_scope(bool is_needed) {
  const bool tried = std::getenv(kTried) != nullptr;
  ::unsetenv(kTried);  // the job is not to have it
  if (tried || !is_needed) return;
  std::vector<std::string> command = own_arguments();
  if (::geteuid() == 0 || command.empty() || !gives_scopes()) return;
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0 || length == sizeof(self)) return;
  command[0].assign(self, static_cast<size_t>(length));
  ::setenv(kTried, "1", 1);
  std::vector<char*> arguments = scope_of(command);
  ::execvp(arguments[0], arguments.data());
  ::unsetenv(kTried);
}

}  // namespace plimsoll::cli
