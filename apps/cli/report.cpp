#include "report.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "elements.h"

namespace plimsoll::cli {

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

void JsonOutput::begin() {
  if (!begun_) print("{\n");
  begun_ = true;
}

void JsonOutput::finish(const Json& object) {
  // Names come from files: what is not UTF-8 in them is replaced.
  const std::string text = object.dump(1) + "\n";
  print(std::string_view(text).substr(begun_ ? 2 : 0));
}

Json accounts_json(const MemoryReport& report) {
  Json accounts;
  for (size_t i = 0; i < kAccounts; ++i)
    accounts[account_name(static_cast<Account>(i))] = report.accounts[i].at_peak_bytes;
  return accounts;
}

Json accounts_json(const Plan& plan) {
  Json accounts;
  for (size_t i = 0; i < kAccounts; ++i) accounts[account_name(static_cast<Account>(i))] = plan.accounts[i];
  return accounts;
}

Json value_json(const std::string& name, const Value& value) {
  constexpr size_t kFirst = 8;
  if (!value.IsTensor()) {
    Json list = {{"name", name},
                 {"kind", value_kind_name(value.GetKind())},
                 {"type", element_type_name(value.GetElementType())}};
    if (!value.HasValue()) return list;
    Json elements = Json::array();
    for (size_t i = 0; i < std::min(kFirst, value.GetCount()); ++i)
      elements.push_back(value_json(!value.IsMap() ? std::to_string(i)
                                    : i == 0       ? "keys"
                                                   : "values",
                                    value.GetValue(i)));
    list["count"] = value.GetCount();
    list["elements"] = std::move(elements);
    return list;
  }
  Json first = Json::array();
  for (size_t i = 0; i < std::min(kFirst, value.GetElementCount()); ++i)
    first.push_back(json_element(value, i));
  return {{"name", name},
          {"type", element_type_name(value.GetElementType())},
          {"shape", value.GetShape()},
          {"first", std::move(first)}};
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(std::abs(number));
  std::string text = number < 0 ? "-" : "";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string human_bytes(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < std::size(units)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string accounts_table(const Json& accounts, const std::string& total_label, int64_t total) {
  std::string table;
  for (const auto& [name, bytes] : accounts.items()) {
    if (bytes.get<int64_t>() != 0)
      table += fmt::format("  {:<16}{:>16}\n", name, grouped(bytes.get<int64_t>()));
  }
  return table + fmt::format("  {:<16}{:>16}  ({})\n", total_label, grouped(total), human_bytes(total));
}

}  // namespace plimsoll::cli
