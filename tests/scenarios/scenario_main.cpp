// plimsoll_scenario FAMILY SEED [SECONDS]: behaves as its family says and prints a line per iteration.
// plimsoll_scenario --list
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "scenario.h"

int main(int argc, char** argv) {
  using namespace plimsoll::scenarios;
  std::vector<Family> families;
  for (const auto* some :
       {&heap_leaks(), &kernel_leaks(), &steady_heaps(), &steady_kernels(), &fresh_families(), &blind_leaks(),
        &blind_steady(), &second_leaks(), &second_steady()}) {
    families.insert(families.end(), some->begin(), some->end());
  }
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Family& family : families) std::printf("%s\n", family.name);
    return 0;
  }
  if (argc < 3) {
    std::fprintf(stderr, "usage: plimsoll_scenario FAMILY SEED [SECONDS]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  for (const Family& family : families) {
    if (std::strcmp(family.name, argv[1]) != 0) continue;
    try {
      Run run(std::strtoull(argv[2], nullptr, 10), argc > 3 ? std::strtod(argv[3], nullptr) : 14);
      family.run(run);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "plimsoll_scenario %s: %s\n", argv[1], error.what());
      return 1;
    }
    std::fflush(stdout);
    if (std::getenv("PLIMSOLL_SCENARIO_RETURNS") != nullptr) return 0;  // for tools that look at the end
    std::_Exit(0);                                                      // its threads still run
  }
  std::fprintf(stderr, "plimsoll_scenario: no family '%s'\n", argv[1]);
  return 2;
}
