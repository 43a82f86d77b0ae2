// Preloaded into the command, it makes one process of it answer many command lines: each runs in a fork that
// stands right before main(), so that loading and linking are paid once. What runs is the command, as it is.
//
// On the descriptor that PLIMSOLL_FORK_SERVER names: a 32-bit size and that many bytes: strings that each end
// in a zero, namely a file for stdout, one for stderr, then the arguments. Back come four bytes, the status
// as waitpid gives it. End of file ends the server.
//
// With PLIMSOLL_COMMANDS_PER_FORK=N a fork runs N of them, one after another, which a sanitizer's build
// wants: there a fork and its end, with the search for leaks, take five times what a small model takes. What
// it finds at the end of a fork is told of that fork's last command.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr rlim_t kSecondsPerCommand = 120;  // of the processor: the machine may be busy with others

using Main = int (*)(int, char**, char**);

Main the_commands_main;
int the_socket;
int the_own_stderr;

bool read_all(void* to, std::size_t size) {
  auto* at = static_cast<char*>(to);
  while (size) {
    const ssize_t count = ::read(the_socket, at, size);
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

std::vector<std::string> read_strings(std::size_t size) {
  std::string bytes(size, '\0');
  if (!read_all(bytes.data(), size)) std::_Exit(0);
  std::vector<std::string> strings;
  for (std::size_t at = 0; at < size; at += strings.back().size() + 1)
    strings.emplace_back(bytes.c_str() + at);
  return strings;
}

void write_into(const std::string& file, int descriptor) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (opened < 0) std::_Exit(99);
  ::dup2(opened, descriptor);
  ::close(opened);
}

void limit_processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  const rlimit most{seconds + kSecondsPerCommand, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CPU, &most);
}

int run_command(std::vector<std::string>& strings, char** environment) {
  limit_processor_time();
  write_into(strings[0], STDOUT_FILENO);
  write_into(strings[1], STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::size_t i = 2; i < strings.size(); ++i) arguments.push_back(strings[i].data());
  arguments.push_back(nullptr);
  const int code = the_commands_main(static_cast<int>(arguments.size()) - 1, arguments.data(), environment);
  std::fflush(nullptr);
  return code;
}

bool answer(int status) {
  return ::write(the_socket, &status, sizeof status) == sizeof status;
}

// The last command's answer is how this process ends.
[[noreturn]] void run_commands(std::vector<std::string> strings, int count, char** environment) {
  ::fcntl(the_socket, F_SETFD, FD_CLOEXEC);
  for (;;) {
    const int code = run_command(strings, environment);
    if (--count == 0) std::exit(code);
    std::uint32_t size = 0;
    if (!answer(W_EXITCODE(code, 0)) || !read_all(&size, sizeof size)) {
      ::dup2(the_own_stderr, STDERR_FILENO);  // nobody reads the file any more
      std::exit(0);
    }
    strings = read_strings(size);
  }
}

int serve(int, char**, char** environment) {
  const char* several = std::getenv("PLIMSOLL_COMMANDS_PER_FORK");
  const int per_fork = std::max(1, several ? std::atoi(several) : 1);
  the_own_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  std::uint32_t size = 0;
  while (read_all(&size, sizeof size)) {
    std::vector<std::string> strings = read_strings(size);
    const pid_t child = ::fork();
    if (child == 0) run_commands(std::move(strings), per_fork, environment);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
    if (!answer(status)) return 1;
  }
  return 0;
}

}  // namespace

extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  const char* descriptor = std::getenv("PLIMSOLL_FORK_SERVER");
  the_commands_main = main;
  the_socket = descriptor ? std::atoi(descriptor) : -1;
  return start(descriptor ? serve : main, argc, argv, init, fini, rtld_fini, stack_end);
}
