#include <fcntl.h>
#include <fmt/core.h>
#include <plimsoll/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

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

using Rest = std::vector<std::string>;

struct Declaration {
  std::string_view name;
  Command (*command)(Arguments parent, const Rest& rest);
};

template <Command (*command)(Arguments)>
Command without_rest(Arguments parent, const Rest&) {
  return command(parent);
}

constexpr Declaration kDeclarations[] = {
    {"inspect", without_rest<inspect_command>},
    {"plan", without_rest<plan_command>},
    {"run", without_rest<run_command>},
    {"verify", without_rest<verify_command>},
    {"bench", without_rest<bench_command>},
    {"optimize", without_rest<optimize_command>},
    {"compile", without_rest<compile_command>},
    {"quantize", without_rest<quantize_command>},
    {"operators", without_rest<operators_command>},
    {"place", without_rest<place_command>},
    {"watch", watch_command},
    {"exec", exec_command},
    {"lab", without_rest<lab_command>},
    {"train", without_rest<train_command>},
    {"compare", without_rest<compare_command>},
};

// The one that is asked for, or all where that is none of them: all of their options take a millisecond.
std::vector<Command> declare(Arguments parent, std::string_view asked, const Rest& rest) {
  const auto is_asked = [&](const Declaration& declaration) { return declaration.name == asked; };
  const bool one = std::any_of(std::begin(kDeclarations), std::end(kDeclarations), is_asked);
  std::vector<Command> commands;
  for (const Declaration& declaration : kDeclarations) {
    if (!one || is_asked(declaration)) commands.push_back(declaration.command(parent, rest));
  }
  return commands;
}

int dispatch(int argc, char** argv) {
  const std::vector<std::string> rest = take_rest(argc, argv);
  CommandLine line("plimsoll", "Runs ONNX models inside a memory budget.", "plimsoll " PLIMSOLL_VERSION);
  Arguments all = line.arguments();
  all.require_command();
  all.footer(
      "Example: plimsoll run model.onnx --shape x=1,3,224,224 --limit 64MiB\n"
      "Help on one command: plimsoll COMMAND --help");
  const std::vector<Command> commands = declare(all, argc > 1 ? argv[1] : "", rest);
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
