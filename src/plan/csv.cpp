#include "plan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/fail.h"

namespace plimsoll::plan {
namespace {

constexpr std::array<std::string_view, 6> kColumns = {"id", "lower", "upper", "size", "alignment", "offset"};
enum Column { kId, kLower, kUpper, kSize, kAlignment, kOffset };
constexpr size_t kRequired = 4;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Files that are something else have long lines.
std::string_view shortened(std::string_view text) {
  constexpr size_t kMost = 60;
  return text.substr(0, kMost);
}

std::vector<Column> parse_header(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some spreadsheets begin with it
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty())
    fail(ErrorCode::kInvalidArgument,
         "line 1: expected the names of columns, id,lower,upper,size, found nothing");
  std::vector<Column> columns;
  for (std::string_view name : split(line, ',')) {
    const auto found = std::find(kColumns.begin(), kColumns.end(), name);
    if (found == kColumns.end()) {
      fail(ErrorCode::kInvalidArgument,
           "line 1: column '{}' is not one of id, lower, upper, size, alignment, offset", shortened(name));
    }
    const Column column = static_cast<Column>(found - kColumns.begin());
    if (std::count(columns.begin(), columns.end(), column) > 0) {
      fail(ErrorCode::kInvalidArgument, "line 1: column '{}' appears twice", name);
    }
    columns.push_back(column);
  }
  for (size_t column = 0; column < kRequired; ++column) {
    if (std::count(columns.begin(), columns.end(), static_cast<Column>(column)) == 0) {
      fail(ErrorCode::kInvalidArgument, "line 1: column '{}' is missing", kColumns[column]);
    }
  }
  return columns;
}

int64_t parse_integer(std::string_view text, size_t line, Column column) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorCode::kInvalidArgument, "line {}: {}: an integer of 64 bits expected, found '{}'", line,
         kColumns[column], shortened(text));
  }
  return value;
}

void set(Buffer& buffer, Column column, int64_t value) {
  switch (column) {
    case kId:
      break;
    case kLower:
      buffer.lower = value;
      break;
    case kUpper:
      buffer.upper = value;
      break;
    case kSize:
      buffer.size = value;
      break;
    case kAlignment:
      buffer.alignment = value;
      break;
    case kOffset:
      buffer.offset = value;
      break;
  }
}

// Whoever reads the offsets tells buffers apart by their ids.
void refuse_equal_ids(const std::vector<std::string>& ids, const std::vector<size_t>& lines) {
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [first, is_new] = seen.emplace(ids[i], lines[i]);
    if (is_new) continue;
    fail(ErrorCode::kInvalidArgument, "line {}: id '{}' is that of line {} already", lines[i],
         shortened(ids[i]), first->second);
  }
}

}  // namespace

NamedProblem parse_csv(std::string_view text) {
  const std::vector<std::string_view> lines = split(text, '\n');
  const std::vector<Column> columns = parse_header(lines[0]);
  NamedProblem named;
  std::vector<size_t> numbers;  // of the lines that buffers come from
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::vector<std::string_view> fields = split(lines[i], ',');
    if (fields.size() != columns.size()) {
      fail(ErrorCode::kInvalidArgument, "line {}: {} fields expected, found {}", i + 1, columns.size(),
           fields.size());
    }
    Buffer buffer;
    buffer.alignment = 1;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c] == kId) named.ids.emplace_back(fields[c]);
      if (columns[c] == kId || (columns[c] == kOffset && fields[c].empty())) continue;
      set(buffer, columns[c], parse_integer(fields[c], i + 1, columns[c]));
    }
    named.problem.buffers.push_back(buffer);
    numbers.push_back(i + 1);
  }
  refuse_equal_ids(named.ids, numbers);
  validate(named.problem, [&](size_t buffer) { return fmt::format("line {}", numbers[buffer]); });
  return named;
}

std::string format_csv(const NamedProblem& named, const Placement& placement) {
  const auto& buffers = named.problem.buffers;
  const bool aligned =
      std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.alignment != 1; });
  std::string text = aligned ? "id,lower,upper,size,alignment,offset\n" : "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    text += fmt::format("{},{},{},{},", named.ids[i], b.lower, b.upper, b.size);
    if (aligned) text += fmt::format("{},", b.alignment);
    text += fmt::format("{}\n", placement.offsets[i]);
  }
  return text;
}

}  // namespace plimsoll::plan
