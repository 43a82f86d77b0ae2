// The subcommands. Each function declares one on `parent` and returns what it does: the result is the exit
// code; whatever goes wrong is thrown.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace plimsoll::cli {

// A command line that makes no sense: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command inspect_command(CLI::App& parent);
Command plan_command(CLI::App& parent);
Command run_command(CLI::App& parent);
Command verify_command(CLI::App& parent);
Command bench_command(CLI::App& parent);
Command optimize_command(CLI::App& parent);
Command place_command(CLI::App& parent);
Command lab_command(CLI::App& parent);
// `rest` is what stands behind `--`.
Command watch_command(CLI::App& parent, const std::vector<std::string>& rest);
Command exec_command(CLI::App& parent, const std::vector<std::string>& rest);

}  // namespace plimsoll::cli
