// Config keys that are other names of options: since ONNX Runtime 1.29 every option of a session has one.
#include <charconv>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "runtime/config_keys.h"

namespace plimsoll {
namespace {

[[noreturn]] void reject_value(const std::string& key, const char* expected, const std::string& value) {
  fail(ErrorCode::kInvalidArgument, "config entry '{}': expected {}, found '{}'", key, expected, value);
}

int parse_integer(const std::string& key, const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) reject_value(key, "an integer", value);
  return number;
}

GraphOptimizationLevel parse_level(const std::string& key, const std::string& value) {
  using Level = GraphOptimizationLevel;
  constexpr std::pair<std::string_view, Level> kLevels[] = {{"disable_all", Level::kDisableAll},
                                                            {"enable_basic", Level::kBasic},
                                                            {"enable_extended", Level::kExtended},
                                                            {"enable_layout", Level::kAll},
                                                            {"enable_all", Level::kAll}};
  for (const auto& [name, level] : kLevels) {
    if (name == value) return level;
  }
  reject_value(key, "disable_all, enable_basic, enable_extended, enable_layout or enable_all", value);
}

ExecutionMode parse_mode(const std::string& key, const std::string& value) {
  if (value == "sequential" || value == "ort_sequential") return ExecutionMode::kSequential;
  if (value == "parallel" || value == "ort_parallel") return ExecutionMode::kParallel;
  reject_value(key, "sequential or parallel", value);
}

}  // namespace

bool parse_flag(const std::string& key, const std::string& value) {
  if (value != "0" && value != "1") reject_value(key, "0 or 1", value);
  return value == "1";
}

void set_option_of_key(SessionOptions& o, const std::string& key, const std::string& value) {
  if (key == "session.enable_cpu_mem_arena") o.keep_arena = parse_flag(key, value);
  if (key == "session.enable_mem_pattern")
    o.placer = parse_flag(key, value) ? Placer::kGreedy : Placer::kNaive;
  if (key == "session.execution_mode") o.execution_mode = parse_mode(key, value);
  if (key == "session.graph_optimization_level") o.optimization_level = parse_level(key, value);
  if (key == "session.inter_op_num_threads") o.inter_op_threads = parse_integer(key, value);
  if (key == "session.intra_op_num_threads") o.intra_op_threads = parse_integer(key, value);
  if (key == "session.log_id") o.log_id = value;
  if (key == "session.log_severity_level") o.log_severity_level = parse_integer(key, value);
  if (key == "session.log_verbosity_level") o.log_verbosity_level = parse_integer(key, value);
  if (key == "session.optimized_model_filepath") o.optimized_model_path = value;
  if (key == "session.use_deterministic_compute") o.deterministic_compute = parse_flag(key, value);
  if (key == "session.enable_profiling") {
    o.enable_profiling = !value.empty();
    if (o.enable_profiling) o.profile_file_prefix = value;
  }
}

}  // namespace plimsoll
