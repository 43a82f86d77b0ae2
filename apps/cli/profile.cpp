#include "profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace plimsoll::cli {
namespace {

constexpr size_t kTopNodes = 20;
constexpr double kLargestCache = 64 << 20;

// In units of 10^9.
double per_second(double amount, double ms) {
  return ms > 0 ? amount / ms * 1e-6 : 0;
}

double share_of(double least_ms, double ms) {
  return ms > 0 ? least_ms / ms : 0;
}

}  // namespace

Profile::Profile(const std::vector<Session::ProfileEntry>& entries, size_t runs, const Peaks& peaks,
                 int threads)
    : peaks_(peaks), threads_(threads) {
  struct Sum {
    double ms = 0, operations = 0, bytes = 0, least_ms = 0;
    int64_t count = 0;
  };
  std::map<std::string, Sum> by_operator;
  double total_ms = 0;
  for (const auto& entry : entries) {
    Sum& sum = by_operator[entry.op];
    sum.ms += entry.total_ms;
    sum.operations += static_cast<double>(entry.operations);
    sum.bytes += static_cast<double>(entry.bytes);
    sum.count += entry.count;
    sum.least_ms += least_ms(entry);
    total_ms += entry.total_ms;
  }
  const auto n = static_cast<double>(std::max<size_t>(runs, 1));
  const double whole_ms = std::max(total_ms, 1e-9);
  for (const auto& [op, sum] : by_operator)
    operators_.push_back({op, op, sum.ms / n, sum.ms / whole_ms, sum.count / static_cast<int64_t>(n),
                          per_second(sum.operations, sum.ms), per_second(sum.bytes, sum.ms),
                          share_of(sum.least_ms, sum.ms)});
  for (const auto& entry : entries)
    nodes_.push_back({entry.node, entry.op, entry.total_ms / n, entry.total_ms / whole_ms,
                      entry.count / static_cast<int64_t>(n),
                      per_second(static_cast<double>(entry.operations), entry.total_ms),
                      per_second(static_cast<double>(entry.bytes), entry.total_ms),
                      share_of(least_ms(entry), entry.total_ms)});
  operators_ = sorted(std::move(operators_));
  nodes_ = sorted(std::move(nodes_));
}

// Memory is shared by all threads. Of what a cache holds, each has one of its own for its part.
double Profile::gigabytes_per_second(double bytes) const {
  double rate = peaks_.cached.empty() ? peaks_.gigabytes_per_second
                                      : peaks_.cached.front().gigabytes_per_second * threads_;
  for (const Peaks::Cached& level : peaks_.cached) {
    if (bytes >= static_cast<double>(level.bytes * threads_)) rate = level.gigabytes_per_second * threads_;
  }
  if (bytes > kLargestCache) rate = peaks_.gigabytes_per_second;
  return std::max(rate, peaks_.gigabytes_per_second);
}

double Profile::least_ms(const Session::ProfileEntry& entry) const {
  if (peaks_.gflops <= 0 || peaks_.gigabytes_per_second <= 0 || entry.count == 0) return 0;
  const auto bytes = static_cast<double>(entry.bytes);
  return std::max(static_cast<double>(entry.operations) / (peaks_.gflops * threads_),
                  bytes / gigabytes_per_second(bytes / static_cast<double>(entry.count))) *
         1e-6;
}

std::vector<Profile::Row> Profile::sorted(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.lost_ms() > b.lost_ms(); });
  return rows;
}

std::string Profile::text() const {
  const auto rate = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; };
  const auto columns = [&](const Row& row) {
    return fmt::format("{:>10.3f}{:>8.1f}%{:>10}{:>8}{:>8.0f}%", row.ms, 100 * row.share, rate(row.gflops),
                       rate(row.gigabytes), 100 * row.of_peak);
  };
  const std::string headings =
      fmt::format("{:>10}{:>9}{:>10}{:>8}{:>9}", "ms", "share", "GFLOP/s", "GB/s", "of peak");
  std::string text = fmt::format(
      "\npeak measured: {:.0f} GFLOP/s in registers, {:.1f} GB/s from memory, up to {:.0f} from caches; "
      "what loses the most first\n",
      threads_ * peaks_.gflops, peaks_.gigabytes_per_second, gigabytes_per_second(0));
  text += fmt::format("\n  {:<32}{:>8}{}\n", "operator", "count", headings);
  for (const Row& row : operators_)
    text += fmt::format("  {:<32}{:>8}{}\n", row.name, row.count, columns(row));
  text += fmt::format("\n  {:<24}{}  node\n", "operator", headings);
  for (size_t i = 0; i < std::min(kTopNodes, nodes_.size()); ++i)
    text += fmt::format("  {:<24}{}  {}\n", nodes_[i].op, columns(nodes_[i]), nodes_[i].name);
  return text;
}

Json Profile::json() const {
  const auto to_json = [](const Row& row) {
    Json json = {
        {"name", row.name}, {"op", row.op}, {"count", row.count}, {"ms", row.ms}, {"share", row.share}};
    if (row.gflops > 0) json["gflops"] = row.gflops;
    if (row.gigabytes > 0) json["gigabytes_per_second"] = row.gigabytes;
    if (row.of_peak > 0) json["of_peak"] = row.of_peak;
    return json;
  };
  Json operators = Json::array(), nodes = Json::array();
  for (const Row& row : operators_) operators.push_back(to_json(row));
  for (const Row& row : nodes_) nodes.push_back(to_json(row));
  return {{"operators", operators},
          {"nodes", nodes},
          {"peak_gflops", threads_ * peaks_.gflops},
          {"peak_gigabytes_per_second", peaks_.gigabytes_per_second}};
}

}  // namespace plimsoll::cli
