// What commands print on stdout.
#pragma once

#include <plimsoll/memory_report.h>
#include <plimsoll/plan.h>
#include <plimsoll/value.h>

#include <string>
#include <string_view>
#include <vector>

#include "json.h"

namespace plimsoll::cli {

// Writes and flushes; throws kIo when stdout is full or closed.
void print(std::string_view text);

// To stderr, one line each; whether it can be written makes no difference.
void print_warnings(const std::vector<std::string>& warnings);

// One JSON object on stdout. begin() may print its first line ahead of the rest, as a sign that the first
// result exists; nothing may fail between the two.
class JsonOutput {
 public:
  void begin();
  void finish(const Json& object);

 private:
  bool begun_ = false;
};

Json accounts_json(const MemoryReport& report);  // at the moment of the peak: they add up to it
Json accounts_json(const Plan& plan);
// Name, type, shape and the first values.
Json value_json(const std::string& name, const Value& value);

// "12,345,678"
std::string grouped(int64_t number);
// "11.8 MiB"
std::string human_bytes(int64_t bytes);
// The accounts that are not empty, one line each, and `total`.
std::string accounts_table(const Json& accounts, const std::string& total_label, int64_t total);
// What runs again to fit the limit, by operator; empty if nothing does.
std::string recomputed_text(const Plan& plan);
Json recomputed_json(const Plan& plan);

}  // namespace plimsoll::cli
