// Options that several commands share, and how their values are written.
#pragma once

#include <plimsoll/env.h>
#include <plimsoll/plan.h>
#include <plimsoll/session_options.h>

#include <string>
#include <utility>
#include <vector>

#include "arguments.h"

namespace plimsoll::cli {

// "64MiB", "1.5 GiB", "500KB", "1048576"; throws UsageError.
int64_t parse_bytes(const std::string& text, const char* option = "--limit");
// "x=1,3,224,224"; throws UsageError. A scalar is "x=".
std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text);
// "batch=8"; throws UsageError.
std::pair<std::string, int64_t> parse_dim(const std::string& text);
// "x=FILE"; throws UsageError.
std::pair<std::string, std::string> parse_assignment(const std::string& text, const char* option,
                                                     const char* expected);

// For an option's check(): a variable of a script that is not set must not mean that there is no option.
std::string check_not_empty(const std::string& text);

// How the engine is set up.
struct EngineOptions {
  int threads = 0;
  std::string limit, level = "all", placer = "greedy", isa, mismatch = "pack";
  int stop_after = -1;
  bool check_passes = false;
  int concurrent = 1;
  bool poison = false;
  bool strict = false;
  bool no_winograd = false;
  bool bf16 = false;
  std::vector<std::string> custom_ops;
  std::string arena;  // settings of one for what is not planned; empty: none

  SessionOptions session_options() const;
  Env make_env() const;
};
void add_engine_options(Arguments arguments, EngineOptions& options);
void add_custom_ops_option(Arguments arguments, std::vector<std::string>& libraries);
void add_strict_option(Arguments arguments, bool& strict);
void add_arena_option(Arguments arguments, EngineOptions& options);
void add_limit_option(Arguments arguments, EngineOptions& options);
void add_json_option(Arguments arguments, bool& json);
void add_model_option(Arguments arguments, std::string& path);

}  // namespace plimsoll::cli
