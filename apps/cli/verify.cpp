#include <fmt/format.h>
#include <plimsoll/error.h>
#include <plimsoll/session.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "command.h"
#include "compare.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"
#include "tensor_pb.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOtherKinds[] = {"sequence(", "optional(", "map(", "sparse", "opaque"};

struct VerifyOptions {
  std::vector<std::string> directories;
  EngineOptions engine;
  Tolerance tolerance;
  int repeat = 1;
  bool json = false;
};

// A directory with a model and data sets.
bool is_case(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "model.onnx", error);
}

std::vector<fs::path> children(const fs::path& path, const std::string& prefix = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
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

// input_0.pb, input_1.pb, ... as far as they go.
std::vector<NamedValue> read_values(const fs::path& set, const char* prefix) {
  std::vector<NamedValue> values;
  for (;;) {
    const fs::path file = set / fmt::format("{}_{}.pb", prefix, values.size());
    if (!fs::exists(file)) return values;
    values.push_back(read_tensor_pb(file.string()));
  }
}

enum class Status { kPassed, kFailed, kNotImplemented };

struct Verdict {
  Status status = Status::kPassed;
  std::string reason;
  std::vector<std::string> missing;  // operators
};

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options)
      : options_(options),
        env_(options.engine.make_env()),
        session_options_(options.engine.session_options()) {}

  Verdict verify(const fs::path& directory) const {
    const std::string model = (directory / "model.onnx").string();
    try {
      return run_case(directory, model);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled && interrupted()) throw;
      if (error.code() == ErrorCode::kNotImplemented)
        return {Status::kNotImplemented, error.what(), missing_operators(model)};
      return {Status::kFailed, fmt::format("{}: {}", error_code_name(error.code()), error.what()), {}};
    } catch (const std::exception& error) {
      return {Status::kFailed, fmt::format("unexpected exception: {}", error.what()), {}};
    }
  }

 private:
  Verdict run_case(const fs::path& directory, const std::string& model) const {
    Session session(env_, model, session_options_);
    require_tensors(session.GetInputs());
    require_tensors(session.GetOutputs());
    const std::vector<fs::path> sets = children(directory, "test_data_set_");
    if (sets.empty()) return {Status::kFailed, "there is no test_data_set_0", {}};
    for (const fs::path& set : sets) {
      for (int i = 0; i < options_.repeat; ++i) {
        if (auto reason = run_set(session, set))
          return {Status::kFailed, fmt::format("{}: {}", set.filename().string(), *reason), {}};
      }
    }
    return {};
  }

  static void require_tensors(const std::vector<ValueInfo>& infos) {
    for (const ValueInfo& info : infos) {
      const bool is_tensor = std::none_of(std::begin(kOtherKinds), std::end(kOtherKinds),
                                          [&](const char* kind) { return info.type_text.starts_with(kind); });
      if (!is_tensor)
        throw Error(ErrorCode::kNotImplemented, fmt::format("'{}': type {}", info.name, info.type_text));
    }
  }

  std::optional<std::string> run_set(Session& session, const fs::path& set) const {
    std::vector<std::string> names, output_names;
    std::vector<Value> values;
    match_inputs(session.GetInputs(), read_values(set, "input"), names, values);
    const std::vector<NamedValue> expected = read_values(set, "output");
    const std::vector<ValueInfo>& outputs = session.GetOutputs();
    if (expected.empty() || expected.size() > outputs.size())
      return fmt::format("the model has {} outputs, the data {}", outputs.size(), expected.size());
    for (const ValueInfo& info : outputs) output_names.push_back(info.name);
    const InterruptGuard guard;
    const std::vector<Value> found = session.Run(interruptible(), names, values, output_names);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (auto wrong = difference(found[i], expected[i].value, options_.tolerance))
        return fmt::format("output '{}': {}", output_names[i], *wrong);
    }
    return std::nullopt;
  }

  // By position; by name where some inputs have no file because the model has values for them.
  static void match_inputs(const std::vector<ValueInfo>& infos, const std::vector<NamedValue>& given,
                           std::vector<std::string>& names, std::vector<Value>& values) {
    for (size_t i = 0; i < given.size(); ++i) {
      if (given.size() == infos.size()) {
        names.push_back(infos[i].name);
      } else {
        const bool known = std::any_of(infos.begin(), infos.end(),
                                       [&](const ValueInfo& info) { return info.name == given[i].name; });
        if (!known) continue;
        names.push_back(given[i].name);
      }
      values.push_back(given[i].value);
    }
  }

  // What the model needs that is not there; nothing if it is something else than an operator.
  std::vector<std::string> missing_operators(const std::string& model) const {
    try {
      return Model(env_, model, session_options_).GetInfo().not_implemented;
    } catch (const std::exception&) {
      return {};
    }
  }

  const VerifyOptions& options_;
  Env env_;
  SessionOptions session_options_;
};

// Counts verdicts and tells them.
class Tally {
 public:
  void add(const std::string& name, const Verdict& verdict, bool json) {
    if (verdict.status == Status::kPassed) ++passed_;
    if (verdict.status == Status::kFailed) {
      failures_.push_back({{"case", name}, {"reason", verdict.reason}});
      if (!json) print(fmt::format("failed {}: {}\n", name, verdict.reason));
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
    if (!not_implemented_.empty())
      print(fmt::format("{} not implemented{}\n", not_implemented_.size(), list));
    print(fmt::format("{} passed, {} failed\n", passed_, failures_.size()));
  }

  Json json() const {
    return {{"passed", passed_},
            {"failed", failures_.size()},
            {"not_implemented", not_implemented_.size()},
            {"missing_operators", missing_},
            {"failures", failures_},
            {"not_implemented_cases", not_implemented_}};
  }
  int exit_code() const { return failures_.empty() ? 0 : 1; }

 private:
  int passed_ = 0;
  Json failures_ = Json::array(), not_implemented_ = Json::array();
  std::map<std::string, int> missing_;
};

int verify(const VerifyOptions& options) {
  catch_interrupts();
  const std::vector<fs::path> cases = find_cases(options.directories);
  const Verifier verifier(options);
  Tally tally;
  const bool show = ::isatty(STDERR_FILENO) != 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (show) fmt::print(stderr, "\r\033[K{} of {} {}", i, cases.size(), cases[i].filename().string());
    const Verdict verdict = verifier.verify(cases[i]);
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

Command verify_command(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("verify", "Run ONNX test directories and compare the outputs");
  auto options = std::make_shared<VerifyOptions>();
  app->add_option("DIR", options->directories,
                  "directories with model.onnx and test_data_set_*, or parents of such")
      ->required();
  app->add_option("--rtol", options->tolerance.relative, "relative tolerance (0.001)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--atol", options->tolerance.absolute, "absolute tolerance (1e-7)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--repeat", options->repeat, "run every data set N times")->check(CLI::Range(1, 1000000));
  add_engine_options(*app, options->engine);
  add_json_option(*app, options->json);
  app->footer(
      "Example: plimsoll verify /usr/share/libonnx-testdata/data/node/test_conv*\n"
      "The last line is `N passed, M failed`; what needs operators that are not implemented is counted "
      "apart.");
  return {app, [options] { return verify(*options); }};
}

}  // namespace plimsoll::cli
