#include <fcntl.h>
#include <fmt/core.h>
#include <plimsoll/error.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string>
#include <string_view>

#include "command.h"
#include "interrupt.h"

namespace plimsoll::cli {
namespace {

constexpr int kWrongUsage = 2;
constexpr int kInternalError = 70;

int complain(const char* message, int code) {
  std::fprintf(stderr, "plimsoll: %s\n", message);  // throws nothing when stderr is closed
  return code;
}

bool runs_another(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  return command == "watch" || command == "exec";
}

// What stands behind `--` for the commands that run another. CLI11 would take brackets and commas in it
// apart.
std::vector<std::string> take_rest(int& argc, char** argv) {
  std::vector<std::string> rest;
  if (!runs_another(argc, argv)) return rest;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    rest.assign(argv + i + 1, argv + argc);
    argc = i;
  }
  return rest;
}

// A descriptor that we were started without would become some file or pipe of ours, and what is printed would
// go there. Writing to stdout still fails.
void occupy_standard_descriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    if (::open("/dev/null", standard == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0) return;
  }
}

int dispatch(int argc, char** argv) {
  const std::vector<std::string> rest = take_rest(argc, argv);
  CommandLine line("plimsoll", "Runs ONNX models inside a memory budget.", "plimsoll " PLIMSOLL_VERSION);
  Arguments all = line.arguments();
  all.require_command();
  all.footer(
      "Example: plimsoll run model.onnx --shape x=1,3,224,224 --limit 64MiB\n"
      "Help on one command: plimsoll COMMAND --help");
  const Command commands[] = {inspect_command(all), plan_command(all),        run_command(all),
                              verify_command(all),  bench_command(all),       optimize_command(all),
                              compile_command(all), quantize_command(all),    operators_command(all),
                              place_command(all),   watch_command(all, rest), exec_command(all, rest),
                              lab_command(all),     train_command(all),       compare_command(all)};
  std::string message;
  const CommandLine::Outcome outcome = line.parse(argc, argv, message);
  if (outcome == CommandLine::Outcome::kAnswered) return 0;
  if (outcome == CommandLine::Outcome::kNoCommand)
    message = argc > 1 ? fmt::format("there is no command '{}'; plimsoll --help lists them", argv[1])
                       : "no command is given; plimsoll --help lists them";
  if (outcome == CommandLine::Outcome::kUnexpected && runs_another(argc, argv))
    message +=
        fmt::format("; a command to run stands behind --: plimsoll {} [options] -- COMMAND...", argv[1]);
  if (outcome != CommandLine::Outcome::kParsed) return complain(message.c_str(), kWrongUsage);
  for (const Command& command : commands) {
    if (command.arguments.is_given()) return command.run();
  }
  return kWrongUsage;
}

}  // namespace
}  // namespace plimsoll::cli

int main(int argc, char** argv) {
  using namespace plimsoll;
  using namespace plimsoll::cli;
  occupy_standard_descriptors();
  try {
    return dispatch(argc, argv);
  } catch (const UsageError& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled && interrupted())
      return complain("interrupted", interrupted_exit_code());
    return complain(error.what(), exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return complain("out of memory", exit_code(ErrorCode::kOutOfMemory));
  } catch (const std::exception& error) {
    return complain(error.what(), kInternalError);
  }
}
