// What a sandbox changes in the request for a process.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "isolate/request.h"

namespace plimsoll {
namespace {

const char* const kHarmless[] = {
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_COLLATE",
    "LC_MESSAGES",
    "LC_TIME",
    "TZ",
    "TERM",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "LC_NUMERIC",
    "COLUMNS",
    "LINES",
    "MKL_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "NO_COLOR",
    "MALLOC_ARENA_MAX",
    "MALLOC_TRIM_THRESHOLD_",
    "PYTHONDONTWRITEBYTECODE",
};

bool has_variable(const std::vector<std::string>& environment, const std::string& prefix) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& variable) { return variable.rfind(prefix, 0) == 0; });
}

// Where exec would find the program; empty if nowhere. The sandbox may hide the directory it is named from.
std::string find_program(const std::vector<std::string>& candidates, const std::string& working_directory) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  for (const int mode : {X_OK, F_OK}) {
    for (const std::string& candidate : candidates) {
      std::string path = here / working_directory / candidate;
      if (!std::filesystem::is_directory(path, error) && ::access(path.c_str(), mode) == 0) return path;
    }
  }
  return "";
}

}  // namespace

std::map<std::string, std::string> HarmlessEnvironment() {
  std::map<std::string, std::string> environment;
  for (const char* name : kHarmless) {
    if (const char* value = std::getenv(name)) environment.emplace(name, value);
  }
  return environment;
}

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
  request.confinement = &sandbox;
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
  // Its user's is hidden; programs keep caches and settings there.
  if (!has_variable(request.environment, "HOME="))
    request.environment.push_back("HOME=" + sandbox.environment().front().second);
}

}  // namespace plimsoll
