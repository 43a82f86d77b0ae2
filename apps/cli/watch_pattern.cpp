#include "watch_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "command.h"

namespace plimsoll::cli {
namespace {

[[noreturn]] void refuse(const std::string& pattern, const char* why) {
  throw UsageError(fmt::format("--iterations-from-stdout: '{}': {}", pattern, why));
}

// Behind the bracket that ends what begins at `begin`.
size_t bracket_end(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  if (at < text.size() && text[at] == '^') ++at;
  if (at < text.size() && text[at] == ']') ++at;
  while (at < text.size() && text[at] != ']') {
    const bool is_class = text[at] == '[' && at + 1 < text.size() && text[at + 1] == ':';
    const size_t end = is_class ? text.find(":]", at + 2) : std::string_view::npos;
    at = end == std::string_view::npos ? at + 1 : end + 2;
  }
  return std::min(at + 1, text.size());
}

std::string bracket(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char* members = next == 'd'   ? "0-9"
                          : next == 's' ? "[:space:]"
                          : next == 'w' ? "[:alnum:]_"
                                        : nullptr;
    if (members) ++i;
    out += members ? std::string(members) : std::string(1, text[i]);
  }
  return out;
}

// How many states the library would write out: it repeats what {N} repeats.
class Size {
 public:
  void add_atom() { last_ = 1, groups_.back() += 1; }
  void open() { groups_.push_back(1); }
  void close() {
    if (groups_.size() == 1) return;
    last_ = groups_.back();
    groups_.pop_back();
    groups_.back() += last_;
  }
  void repeat(double times) {
    groups_.back() += last_ * std::max(times - 1, 0.0);
    last_ *= std::max(times, 1.0);
  }
  bool is_too_large() const {
    constexpr double kMost = 5000;
    return *std::max_element(groups_.begin(), groups_.end()) > kMost;
  }

 private:
  std::vector<double> groups_ = {0};
  double last_ = 0;
};

}  // namespace

std::string posix_pattern(const std::string& pattern) {
  std::string out;
  Size size;
  for (size_t i = 0; i < pattern.size();) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    size_t end = i + 1;
    std::string piece(1, c);
    if (c == '[') {
      end = bracket_end(pattern, i);
      piece = bracket(std::string_view(pattern).substr(i, end - i));
    } else if (c == '\\' && next != '\0') {
      if (next >= '1' && next <= '9')
        refuse(pattern, "a reference to a group can take without end; write it out");
      end = i + 2;
      piece = next == 'd' ? "[0-9]" : next == 'D' ? "[^0-9]" : pattern.substr(i, 2);
    } else if (c == '{') {
      const size_t closing = pattern.find('}', i);
      end = closing == std::string::npos ? i + 1 : closing + 1;
      piece = pattern.substr(i, end - i);
      const size_t comma = piece.find(',');
      const double least = std::atof(piece.c_str() + 1);
      size.repeat(std::max(least, comma == std::string::npos ? 0 : std::atof(piece.c_str() + comma + 1)));
    }
    if (c == '(') size.open();
    if (c == ')') size.close();
    if (c != '{' && c != '(' && c != ')') size.add_atom();
    if (size.is_too_large()) refuse(pattern, "its repetitions multiply to too many");
    out += piece;
    i = end;
  }
  return out;
}

}  // namespace plimsoll::cli
