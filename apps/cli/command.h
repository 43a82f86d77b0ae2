// The subcommands. Each function declares one on `parent` and returns what it does: the result is the exit
// code; whatever goes wrong is thrown.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.h"

namespace plimsoll::cli {

// A command line that makes no sense: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Command {
  Arguments arguments;
  std::function<int()> run;
};

Command inspect_command(Arguments parent);
Command plan_command(Arguments parent);
Command run_command(Arguments parent);
Command verify_command(Arguments parent);
Command bench_command(Arguments parent);
Command optimize_command(Arguments parent);
Command compile_command(Arguments parent);
Command quantize_command(Arguments parent);
Command compare_command(Arguments parent);
Command operators_command(Arguments parent);
Command place_command(Arguments parent);
Command train_command(Arguments parent);
Command lab_command(Arguments parent);
// `rest` is what stands behind `--`.
Command watch_command(Arguments parent, const std::vector<std::string>& rest);
Command exec_command(Arguments parent, const std::vector<std::string>& rest);

}  // namespace plimsoll::cli
