#include "options.h"

#include <fmt/core.h>
#include <plimsoll/error.h>
#include <plimsoll/memory_limit.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "command.h"

namespace plimsoll::cli {
namespace {

[[noreturn]] void reject(const char* option, const char* expected, const std::string& found) {
  throw UsageError(fmt::format("{}: expected {}, found '{}'", option, expected, found));
}

int64_t parse_size(const char* option, const char* expected, std::string_view number,
                   const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || value < 0)
    reject(option, expected, text);
  return value;
}

const std::map<std::string, GraphOptimizationLevel> kLevels = {
    {"none", GraphOptimizationLevel::kDisableAll},
    {"basic", GraphOptimizationLevel::kBasic},
    {"extended", GraphOptimizationLevel::kExtended},
    {"all", GraphOptimizationLevel::kAll}};

}  // namespace

int64_t parse_bytes(const std::string& text, const char* option) {
  constexpr const char* kExpected = "bytes, such as 64MiB, 1.5GiB, 500KB or 1048576";
  try {
    return ParseMemorySize(text);
  } catch (const Error&) {
    reject(option, kExpected, text);
  }
}

namespace {

int64_t parse_limit(const std::string& text) {
  return text == "container" ? ParseMemoryLimit(text) : parse_bytes(text);
}

// "max_mem=64MiB,arena_extend_strategy=kSameAsRequested"
ArenaCfg parse_arena(const std::string& text) {
  std::map<std::string, std::string> settings;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    settings.insert(parse_assignment(text.substr(at, comma - at), "--arena", "NAME=VALUE,..."));
    at = comma + 1;
  }
  try {
    return ArenaCfg(settings);
  } catch (const Error& error) {
    throw UsageError(fmt::format("--arena: {}", error.what()));
  }
}

}  // namespace

std::pair<std::string, std::string> parse_assignment(const std::string& text, const char* option,
                                                     const char* expected) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) reject(option, expected, text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text) {
  constexpr const char* kExpected = "NAME=SIZES, such as x=1,3,224,224";
  const auto [name, sizes] = parse_assignment(text, "--shape", kExpected);
  std::vector<int64_t> shape;
  for (size_t at = 0; !sizes.empty() && at <= sizes.size();) {
    const size_t comma = std::min(sizes.find(',', at), sizes.size());
    shape.push_back(parse_size("--shape", kExpected, std::string_view(sizes).substr(at, comma - at), text));
    at = comma + 1;
  }
  return {name, shape};
}

std::pair<std::string, int64_t> parse_dim(const std::string& text) {
  constexpr const char* kExpected = "SYMBOL=SIZE, such as batch=8";
  const auto [name, size] = parse_assignment(text, "--dim", kExpected);
  return {name, parse_size("--dim", kExpected, size, text)};
}

SessionOptions EngineOptions::session_options() const {
  SessionOptions options;
  options.intra_op_threads = threads;
  if (!limit.empty()) options.memory_limit_bytes = parse_limit(limit);
  options.optimization_level = kLevels.at(level);
  options.placer = placer == "naive" ? Placer::kNaive : Placer::kGreedy;
  options.stop_after_pass = stop_after;
  options.check_passes = check_passes;
  options.max_concurrent_runs = concurrent;
  options.poison = poison;
  if (mismatch == "refuse") options.compiled_mismatch = CompiledMismatch::kRefuse;
  options.strict = strict;
  options.winograd = !no_winograd;
  options.bfloat16_products = bf16;
  options.custom_ops_libraries = custom_ops;
  if (!arena.empty()) options.arena = parse_arena(arena == "default" ? "" : arena);
  return options;
}

Env EngineOptions::make_env() const {
  EnvOptions options;
  options.instruction_set = isa;
  return Env(options);
}

void add_engine_options(Arguments arguments, EngineOptions& options) {
  arguments.add_option("--threads", options.threads, "threads of one run (0: one per CPU)").range(0, 1024);
  arguments.add_option("--level,--optimize", options.level, "optimization: none, basic, extended or all")
      .one_of({"none", "basic", "extended", "all"});
  arguments.add_option("--stop-after", options.stop_after, "run only the first N optimization passes")
      .range(0, 1 << 20);
  arguments.add_flag("--check-passes", options.check_passes,
                     "prove the model anew after every optimization pass");
  arguments.add_option("--placer", options.placer, "how memory is shared: greedy, or naive (not at all)")
      .one_of({"naive", "greedy"});
  arguments.add_flag("--poison", options.poison, "fill memory with NaN before use and after the last use");
  arguments
      .add_option("--isa", options.isa,
                  "the most that kernels may use: sse4, avx2, avx_vnni, avx512f, avx512 or amx; on Arm neon")
      .one_of({"sse4", "avx2", "avx_vnni", "avx512f", "avx512", "amx", "neon"});
  arguments.add_flag("--no-winograd", options.no_winograd,
                     "3x3 convolutions and large products by their definition");
  arguments.add_flag("--bf16", options.bf16,
                     "products with constant matrices, and convolutions, in bfloat16");
  arguments.add_option("--concurrent", options.concurrent, "runs at once that memory is planned for")
      .range(1, 1024);
  arguments
      .add_option("--mismatch", options.mismatch,
                  "a compiled file for another build or instruction set: pack its original again, or refuse")
      .one_of({"pack", "refuse"});
  add_strict_option(arguments, options.strict);
  add_custom_ops_option(arguments, options.custom_ops);
}

void add_custom_ops_option(Arguments arguments, std::vector<std::string>& libraries) {
  arguments.add_option("--custom-ops", libraries, "a shared library of operators; repeatable")
      .one_value_each();
}

void add_strict_option(Arguments arguments, bool& strict) {
  arguments.add_flag("--strict", strict, "refuse what ONNX forbids, instead of a warning");
}

void add_limit_option(Arguments arguments, EngineOptions& options) {
  arguments.add_option("--limit", options.limit,
                       "a hard line over all memory of the session, such as 64MiB, or container");
}

void add_arena_option(Arguments arguments, EngineOptions& options) {
  arguments
      .add_option("--arena", options.arena,
                  "keep what is not planned in an arena: default, or settings such as "
                  "arena_extend_strategy=kSameAsRequested,max_mem=64MiB")
      .check(check_not_empty);
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "has an empty value; give one, or leave the option out" : "";
}

void add_json_option(Arguments arguments, bool& json) {
  arguments.add_flag("--json", json, "print one JSON object and nothing else");
}

void add_model_option(Arguments arguments, std::string& path) {
  arguments.add_option("MODEL", path, "an ONNX file, or a compiled one").required();
}

}  // namespace plimsoll::cli
