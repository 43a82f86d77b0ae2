#include "watch_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report.h"
#include "watch_parts.h"

namespace plimsoll::cli {

std::string plain_text(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c < 0x20 || c >= 0x7f) c = '?';
  return out;
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    const size_t space = text.rfind(' ', width);
    const size_t end = space == std::string_view::npos || space == 0 ? width : space;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string amount(double bytes) {
  const double most = 9e18;
  return human_bytes(std::llround(std::clamp(std::isnan(bytes) ? 0.0 : bytes, -most, most)));
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
               : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string target_text(const RecordingHeader& header) {
  if (header.command.empty()) return fmt::format("{} (pid {})", plain_text(header.name), header.pid);
  std::string text;
  for (const std::string& word : header.command) {
    if (!text.empty()) text += ' ';
    text += plain_text(word);
  }
  return text;
}

std::string verdict_text(const Verdict& verdict) {
  std::string text = verdict_name(verdict.kind);
  if (verdict.kind == VerdictKind::kUndecided) {
    if (verdict.seconds_needed > 0)
      text += fmt::format(": about {:.0f} s more would do", std::ceil(verdict.seconds_needed));
    return text;
  }
  if (verdict.cause != Cause::kNone) text += fmt::format(": {}", cause_name(verdict.cause));
  const bool grows = verdict.kind == VerdictKind::kLeak || verdict.kind == VerdictKind::kCache;
  if (grows) {
    const bool counted = verdict.bytes_per_iteration.has_value();
    text +=
        fmt::format(", {} per {}", amount(counted ? *verdict.bytes_per_iteration : verdict.bytes_per_second),
                    counted ? "iteration" : "second");
    if (verdict.low != 0 || verdict.high != 0)
      text += fmt::format(" ({} to {})", amount(verdict.low), amount(verdict.high));
  }
  return text + fmt::format(", confidence {:.0f} %", std::floor(100 * verdict.confidence));
}

std::string sample_line(const Sample& sample, const std::optional<Verdict>& verdict) {
  std::string text = fmt::format("{:>9.1f} s", sample.seconds);
  if (sample.iteration >= 0) text += fmt::format("  iteration {}", grouped(sample.iteration));
  if (sample.gap) return text + fmt::format("  gap: {}", plain_text(sample.gap_reason));
  text += fmt::format("  process {}", human_bytes(sample.process.kernel_bytes));
  if (sample.container) text += fmt::format("  container {}", human_bytes(sample.container->kernel_bytes));
  if (verdict) text += fmt::format("  {}", verdict_text(*verdict));
  return text;
}

namespace {

constexpr size_t kFilesShown = 5;
constexpr size_t kTextWidth = 78;

// A sentence beneath a title, behind `mark`, the further lines indented as the first.
std::string item(const std::string& mark, const std::string& sentence) {
  std::string text;
  for (const std::string& line : wrapped(plain_text(sentence), kTextWidth - mark.size())) {
    text += text.empty() ? mark : std::string(mark.size(), ' ');
    text += line;
    text += '\n';
  }
  return text;
}

// "page_cache" -> "page cache"
std::string part_name(const std::string& name) {
  std::string text = plain_text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string part_line(const MemoryPart& part) {
  std::string text = fmt::format("  {:<34}{:>16}", part_name(part.name), grouped(part.bytes));
  if (part.returnable_bytes > 0)
    text += fmt::format("  {} by {}", human_bytes(part.returnable_bytes),
                        part.returns_by.empty() ? "ending the process" : plain_text(part.returns_by));
  return text + "\n";
}

std::string view_table(const std::string& title, const std::vector<MemoryPart>& parts,
                       int64_t unexplained_bytes, int64_t kernel_bytes) {
  std::string text = fmt::format("\n{:<36}{:>16}  {}\n", title, "bytes", "would come back");
  for (const MemoryPart& part : parts)
    if (part.bytes != 0) text += part_line(part);
  text += fmt::format("  {:<34}{:>16}\n", "unexplained", grouped(unexplained_bytes));
  return text + fmt::format("  {:<34}{:>16}  ({})\n", "the kernel's figure", grouped(kernel_bytes),
                            human_bytes(kernel_bytes));
}

std::string file_name(const std::string& path, size_t width) {
  const std::string plain = plain_text(path);
  return plain.size() <= width ? plain : fmt::format("...{}", plain.substr(plain.size() - width + 3));
}

std::string file_table(const char* title, const std::vector<MemoryPart>& files) {
  if (files.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (size_t i = 0; i < std::min(files.size(), kFilesShown); ++i)
    text += fmt::format("  {:<50}{:>16}\n", file_name(files[i].name, 49), grouped(files[i].bytes));
  if (files.size() > kFilesShown) text += fmt::format("  and {} more\n", files.size() - kFilesShown);
  return text;
}

std::string account_text(const MemoryAccount& account) {
  const Sample& sample = account.sample;
  const std::string whose = sample.process.processes > 1
                                ? fmt::format("{} processes", sample.process.processes)
                                : std::string("process");
  std::string text = view_table(fmt::format("{} after {:.1f} s", whose, sample.seconds), account.process,
                                account.process_unexplained_bytes, sample.process.kernel_bytes);
  text += file_table("  of which by mapped file", account.libraries);
  if (sample.container) {
    text += view_table("container", account.container, account.container_unexplained_bytes,
                       sample.container->kernel_bytes);
    if (sample.container->limit_bytes > 0)
      text += fmt::format("  {:<34}{:>16}  ({})\n", "limit", grouped(sample.container->limit_bytes),
                          human_bytes(sample.container->limit_bytes));
  }
  return text + file_table("  page cache by file", account.cached_files);
}

}  // namespace

std::string report_text(const WatchHistory& history) {
  std::string text = item("verdict: ", verdict_text(history.verdict));
  for (const std::string& sentence : history.verdict.evidence) text += item("  - ", sentence);
  if (history.account) text += account_text(*history.account);
  if (!history.experiments.empty()) text += "\nexperiments\n";
  for (const Experiment& experiment : history.experiments)
    text += item("  - ", fmt::format("{}: {}", experiment.name, experiment.finding));
  std::vector<std::string> notes = history.notes;
  if (history.account)
    notes.insert(notes.end(), history.account->notes.begin(), history.account->notes.end());
  if (!notes.empty()) text += "\nnotes\n";
  for (const std::string& note : notes) text += item("  - ", note);
  return text;
}

}  // namespace plimsoll::cli
