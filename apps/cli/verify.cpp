#include <fmt/core.h>
#include <plimsoll/error.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "case_verifier.h"
#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::vector<std::string> directories, contradictory;
  EngineOptions engine;
  CaseVerifier::Options cases;
  bool json = false;
};

// A directory with a model and data sets.
bool is_case(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "model.onnx", error);
}

// The cases at `path` or up to two levels below it.
void find_cases(const fs::path& path, int levels, std::vector<fs::path>& cases) {
  if (is_case(path)) {
    cases.push_back(path);
  } else if (levels > 0) {
    for (const fs::path& child : children(path)) find_cases(child, levels - 1, cases);
  }
}

std::vector<fs::path> find_cases(const std::vector<std::string>& directories) {
  std::vector<fs::path> cases;
  for (const std::string& directory : directories) {
    const size_t before = cases.size();
    find_cases(directory, 2, cases);
    if (cases.size() == before)
      throw Error(ErrorCode::kIo, fmt::format("{}: expected a directory with a model.onnx in it", directory));
  }
  return cases;
}

// Counts verdicts and tells them.
class Tally {
 public:
  void add(const std::string& name, const Verdict& verdict, bool json) {
    if (verdict.status == Status::kPassed) ++passed_;
    if (verdict.status == Status::kFailed) {
      failures_.push_back({{"case", name}, {"reason", verdict.reason}});
      if (!json) print(fmt::format("failed {}: {}\n", name, verdict.reason));
    }
    if (verdict.status == Status::kContradiction) {
      contradictions_.push_back({{"case", name}, {"reason", verdict.reason}});
      if (!json) print(fmt::format("not run {}: {}\n", name, verdict.reason));
    }
    if (verdict.status == Status::kNotImplemented) {
      not_implemented_.push_back({{"case", name}, {"reason", verdict.reason}});
      for (const std::string& op : verdict.missing) ++missing_[op];
      if (!verdict.missing.empty()) return;
      ++missing_["(other)"];
      if (!json) print(fmt::format("not implemented {}: {}\n", name, verdict.reason));
    }
  }

  void print_summary() const {
    // The most wanted first.
    std::vector<std::pair<std::string, int>> sorted(missing_.begin(), missing_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second > b.second; });
    std::string list;
    for (const auto& [op, count] : sorted)
      list += fmt::format("{}{} {}", list.empty() ? ": " : ", ", op, count);
    if (!contradictions_.empty())
      print(fmt::format("{} not run: their data contradicts their model or the specification\n",
                        contradictions_.size()));
    if (!not_implemented_.empty())
      print(fmt::format("{} not implemented{}\n", not_implemented_.size(), list));
    print(fmt::format("{} passed, {} failed\n", passed_, failures_.size()));
  }

  Json json() const {
    return {{"passed", passed_},
            {"failed", failures_.size()},
            {"not_implemented", not_implemented_.size()},
            {"missing_operators", missing_},
            {"not_run", contradictions_.size()},
            {"failures", failures_},
            {"not_run_cases", contradictions_},
            {"not_implemented_cases", not_implemented_}};
  }
  int exit_code() const { return failures_.empty() ? 0 : 1; }

 private:
  int passed_ = 0;
  Json failures_ = Json::array(), not_implemented_ = Json::array(), contradictions_ = Json::array();
  std::map<std::string, int> missing_;
};

int verify(const VerifyOptions& options) {
  catch_interrupts();
  const std::vector<fs::path> cases = find_cases(options.directories);
  const CaseVerifier verifier(options.engine.make_env(), options.engine.session_options(), options.cases);
  Tally tally;
  const bool show = ::isatty(STDERR_FILENO) != 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (show) fmt::print(stderr, "\r\033[K{} of {} {}", i, cases.size(), cases[i].filename().string());
    const bool known_wrong = std::count(options.contradictory.begin(), options.contradictory.end(),
                                        cases[i].filename().string()) > 0;
    const Verdict verdict = known_wrong ? Verdict{Status::kContradiction, "named by --contradictory", {}}
                                        : verifier.verify(cases[i]);
    if (show) fmt::print(stderr, "\r\033[K");
    tally.add(cases[i].string(), verdict, options.json);
    check_interrupted();
  }
  if (options.json) {
    JsonOutput().finish(tally.json());
  } else {
    tally.print_summary();
  }
  return tally.exit_code();
}

}  // namespace

Command verify_command(Arguments parent) {
  Arguments arguments = parent.add_command("verify", "Run ONNX test directories and compare the outputs");
  auto options = std::make_shared<VerifyOptions>();
  arguments
      .add_option("DIR", options->directories,
                  "directories with model.onnx and test_data_set_*, or parents of such")
      .required();
  arguments.add_option("--contradictory", options->contradictory,
                       "the name of a case whose data contradicts the specification: it is counted, not run");
  arguments.add_option("--rtol", options->cases.tolerance.relative, "relative tolerance (0.001)")
      .not_negative();
  arguments.add_option("--atol", options->cases.tolerance.absolute, "absolute tolerance (1e-7)")
      .not_negative();
  arguments.add_option("--repeat", options->cases.repeat, "run every data set N times").range(1, 1000000);
  arguments.add_flag("--compiled", options->cases.compiled,
                     "run each model from a compiled file, made for it");
  add_engine_options(arguments, options->engine);
  add_json_option(arguments, options->json);
  arguments.footer(
      "Example: plimsoll verify /usr/share/libonnx-testdata/data/node/test_conv*\n"
      "The last line is `N passed, M failed`; what needs operators that are not implemented is counted "
      "apart.");
  return {arguments, [options] { return verify(*options); }};
}

}  // namespace plimsoll::cli
