#include "observe/verdict_runtimes.h"

#include <array>
#include <utility>

namespace plimsoll {

Runtime find_runtime(std::string_view command) {
  constexpr double kMiB = 1024 * 1024;
  // V8: three semi-spaces of 16 MiB. SBCL: a twentieth of its heap, twice. Ruby: what malloc gave since its
  // last collection. The others start with less and grow.
  static constexpr std::array<std::pair<std::string_view, Runtime>, 20> kRuntimes = {{
      {"nodejs", {"V8", 24 * kMiB}},
      {"node", {"V8", 24 * kMiB}},
      {"chromium", {"V8", 24 * kMiB}},
      {"chrome", {"V8", 24 * kMiB}},
      {"firefox", {"SpiderMonkey", 24 * kMiB}},
      {"java", {"the JVM", 32 * kMiB}},
      {"dotnet", {".NET", 32 * kMiB}},
      {"mono", {"Mono", 12 * kMiB}},
      {"sbcl", {"SBCL", 100 * kMiB}},
      {"pypy", {"PyPy", 12 * kMiB}},
      {"guile", {"Guile", 4 * kMiB}},
      {"ruby", {"Ruby", 12 * kMiB}},
      {"puma", {"Ruby", 12 * kMiB}},
      {"deno", {"V8", 24 * kMiB}},
      {"electron", {"V8", 24 * kMiB}},
      {"bun", {"JavaScriptCore", 24 * kMiB}},
      {"gjs", {"SpiderMonkey", 24 * kMiB}},
      {"beam.smp", {"the Erlang machine", 4 * kMiB}},
      {"julia", {"Julia", 32 * kMiB}},
      {"racket", {"Racket", 32 * kMiB}},
  }};
  command = command.substr(0, command.find(' '));
  if (const size_t slash = command.rfind('/'); slash != std::string_view::npos)
    command.remove_prefix(slash + 1);
  for (const auto& [name, runtime] : kRuntimes) {
    // Also java11, pypy3 or chromium's renderers.
    if (command.starts_with(name)) return runtime;
  }
  return {};
}

}  // namespace plimsoll
