// What a sandbox changes in the request for a process.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "isolate/request.h"

namespace plimsoll {
namespace {

// Where exec would find the program; empty if nowhere. The sandbox may hide the directory it is named from.
std::string find_program(const std::vector<std::string>& candidates, const std::string& working_directory) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  for (const int mode : {X_OK, F_OK}) {
    for (const std::string& candidate : candidates) {
      const std::string path = here / working_directory / candidate;
      if (!std::filesystem::is_directory(path, error) && ::access(path.c_str(), mode) == 0) return path;
    }
  }
  return "";
}

}  // namespace

std::unique_ptr<Sandbox> sandbox_for(const Command& command) {
  if (command.sandbox.level == SandboxLevel::kNone) return nullptr;
  const std::string program = find_program(program_candidates(command.argv[0]), command.working_directory);
  return std::make_unique<Sandbox>(command.sandbox, program, command.working_directory);
}

Limits limits_with_init(Limits limits, const Sandbox* sandbox) {
  if (sandbox != nullptr && (sandbox->clone_flags() & CLONE_NEWPID) != 0 && limits.processes > 0) {
    ++limits.processes;
  }
  return limits;
}

void enter_sandbox(SpawnRequest& request, Sandbox& sandbox) {
  request.sandbox = &sandbox;
  const std::string program = find_program(request.programs, request.working_directory);
  if (!program.empty()) request.programs = {program};
  for (const auto& [name, value] : sandbox.environment()) {
    const std::string prefix = name + "=";
    std::vector<std::string>& all = request.environment;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const std::string& variable) { return variable.rfind(prefix, 0) == 0; }),
              all.end());
    all.push_back(prefix + value);
  }
}

}  // namespace plimsoll
