// Preloaded into the command, it makes one process of it answer many command lines: each runs in a fork that
// stands right before main(), so that loading and linking are paid once. What runs is the command, as it is.
//
// On the descriptor that PLIMSOLL_FORK_SERVER names: a 32-bit size and that many bytes: strings that each end
// in a zero, namely a file for stdout, one for stderr, then the arguments. Back come four bytes, the status
// as waitpid gives it. End of file ends the server.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr rlim_t kSecondsPerCommand = 120;  // of the processor: the machine may be busy with others

using Main = int (*)(int, char**, char**);

Main the_commands_main;
int the_socket;

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

[[noreturn]] void run_command(std::vector<std::string>& strings, char** environment) {
  ::close(the_socket);
  const rlimit most{kSecondsPerCommand, kSecondsPerCommand};
  ::setrlimit(RLIMIT_CPU, &most);
  write_into(strings[0], STDOUT_FILENO);
  write_into(strings[1], STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::size_t i = 2; i < strings.size(); ++i) arguments.push_back(strings[i].data());
  arguments.push_back(nullptr);
  std::exit(the_commands_main(static_cast<int>(arguments.size()) - 1, arguments.data(), environment));
}

int serve(int, char**, char** environment) {
  std::uint32_t size = 0;
  while (read_all(&size, sizeof size)) {
    std::vector<std::string> strings = read_strings(size);
    const pid_t child = ::fork();
    if (child == 0) run_command(strings, environment);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
    if (::write(the_socket, &status, sizeof status) != sizeof status) return 1;
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
