#include "isolate/request.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "isolate/surroundings.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace plimsoll {
namespace {

constexpr int64_t kLeastMemoryBytes = int64_t{1} << 20;

void check_not_negative(const char* what, int64_t value) {
  if (value < 0)
    fail(ErrorCode::kInvalidArgument, "limits: {} is {}; expected a positive number, or 0 for no limit", what,
         value);
}

void check_text(const char* what, const std::string& text) {
  if (text.find('\0') != std::string::npos)
    fail(ErrorCode::kInvalidArgument, "command: {} '{}' has a zero byte in it", what, text.c_str());
}

Descriptor open_null(int flags) {
  Descriptor null(::open("/dev/null", flags | O_CLOEXEC));
  if (!null) fail(ErrorCode::kIo, "/dev/null: {}", std::strerror(errno));
  return null;
}

// A file in memory: the job reads at its own pace, and nobody has to feed it.
Descriptor file_of(const std::string& input) {
  Descriptor file(::memfd_create("plimsoll-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  size_t written = 0;
  while (file && written < input.size()) {
    const ssize_t count = ::write(file.get(), input.data() + written, input.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail(ErrorCode::kIo, "cannot hold the job's input of {} bytes: {}", input.size(), std::strerror(errno));
    written += static_cast<size_t>(count);
  }
  if (!file)
    fail(ErrorCode::kIo, "cannot make a file in memory for the job's input: {}", std::strerror(errno));
  ::lseek(file.get(), 0, SEEK_SET);
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return file;
}

Descriptor open_input(const Command& command) {
  return command.input.empty() ? open_null(O_RDONLY) : file_of(command.input);
}

// Ours that becomes the job's `number`; -1: none yet.
int given(const std::vector<std::pair<int, int>>& descriptors, int number) {
  for (const auto& [ours, theirs] : descriptors) {
    if (theirs == number) return ours;
  }
  return -1;
}

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

}  // namespace

void fill_standard_descriptors() {
  for (int number = 0; number <= 2; ++number) {
    if (is_open(number)) continue;
    // The lowest that is free. If another thread takes it meanwhile, it is filled all the same.
    const int null = ::open("/dev/null", O_RDWR);
    if (null > 2) ::close(null);
  }
}

void check_limits(const Limits& limits) {
  check_not_negative("memory_bytes", limits.memory_bytes);
  check_not_negative("wall_time", limits.wall_time.count());
  check_not_negative("cpu_time", limits.cpu_time.count());
  check_not_negative("processes", limits.processes);
  check_not_negative("output_bytes", limits.output_bytes);
  check_not_negative("grace", limits.grace.count());
  if (limits.memory_bytes > 0 && limits.memory_bytes < kLeastMemoryBytes)
    fail(ErrorCode::kInvalidArgument,
         "limits: {} bytes of memory are below what a process needs to start; give at least {} (1 MiB)",
         limits.memory_bytes, kLeastMemoryBytes);
  const int64_t machine = machine_memory_bytes();
  if (machine > 0 && limits.memory_bytes > machine)
    fail(ErrorCode::kInvalidArgument,
         "limits: {} bytes of memory are more than this machine has ({}): no job could be held to it; give "
         "less, or no limit",
         limits.memory_bytes, machine);
}

void check_command(const Command& command) {
  if (command.argv.empty() || command.argv[0].empty())
    fail(ErrorCode::kInvalidArgument, "command: no program is named");
  for (const std::string& argument : command.argv) check_text("argument", argument);
  check_text("working directory", command.working_directory);
  if (command.environment) {
    for (const auto& [name, value] : *command.environment) {
      check_text("variable", name);
      check_text("value", value);
      if (name.empty() || name.find('=') != std::string::npos)
        fail(ErrorCode::kInvalidArgument, "command: '{}' is no name for an environment variable", name);
    }
  }
  if (!command.input.empty() && command.inherit_input)
    fail(ErrorCode::kInvalidArgument, "command: both `input` and `inherit_input` are given");
  constexpr int kHighest = 63;
  for (size_t i = 0; i < command.descriptors.size(); ++i) {
    const auto& [ours, theirs] = command.descriptors[i];
    if (theirs < 0 || theirs > kHighest)
      fail(ErrorCode::kInvalidArgument, "command: the job's descriptor {} is not within 0 to {}", theirs,
           kHighest);
    if (!is_open(ours)) fail(ErrorCode::kInvalidArgument, "command: descriptor {} is not open", ours);
    for (size_t j = 0; j < i; ++j) {
      if (command.descriptors[j].second == theirs)
        fail(ErrorCode::kInvalidArgument, "command: the job's descriptor {} is given twice", theirs);
    }
  }
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> variables;
  const bool is_stranger = command.sandbox.level != SandboxLevel::kNone;
  if (command.environment || is_stranger) {
    for (const auto& [name, value] : command.environment ? *command.environment : HarmlessEnvironment())
      variables.push_back(fmt::format("{}={}", name, value));
  } else {
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
      variables.emplace_back(*variable);
  }
  return variables;
}

Streams open_streams(const Command& command, bool limited, OutputPump& pump, std::string& output,
                     std::string& error) {
  Streams streams;
  streams.descriptors = command.descriptors;
  const auto keep = [&](Descriptor descriptor, int number) {
    streams.descriptors.emplace_back(descriptor.get(), number);
    streams.kept.push_back(std::move(descriptor));
  };
  const auto open_output = [&](int number, Output kind, std::string& sink) {
    if (given(streams.descriptors, number) >= 0) return;
    const bool ours = kind == Output::kInherit || kind == Output::kToError;
    if (kind == Output::kDiscard) return keep(open_null(O_WRONLY), number);
    if (ours && !limited) return void(streams.descriptors.emplace_back(number, number));
    Pipe pipe = make_pipe();
    if (ours)
      pump.pass_on(std::move(pipe.read_end), number);
    else
      pump.capture(std::move(pipe.read_end), &sink);
    keep(std::move(pipe.write_end), number);
  };
  if (given(streams.descriptors, 0) < 0) {
    if (command.inherit_input)
      streams.descriptors.emplace_back(0, 0);
    else
      keep(open_input(command), 0);
  }
  open_output(2, command.standard_error, error);
  if (command.standard_output == Output::kToError && given(streams.descriptors, 1) < 0)
    streams.descriptors.emplace_back(given(streams.descriptors, 2), 1);
  open_output(1, command.standard_output, output);
  return streams;
}

}  // namespace plimsoll
