#include "watch_iterations.h"

#include <fmt/core.h>

#include "command.h"
#include "watch_pattern.h"

namespace plimsoll::cli {
namespace {

constexpr size_t kLongestLine = 4096;  // matching may take the square of it

}  // namespace

IterationCounter::IterationCounter(const std::string& pattern) {
  auto expression = std::make_unique<regex_t>();
  const int error = ::regcomp(expression.get(), posix_pattern(pattern).c_str(), REG_EXTENDED | REG_NOSUB);
  if (error != 0) {
    char reason[200];
    ::regerror(error, expression.get(), reason, sizeof(reason));
    throw UsageError(fmt::format("--iterations-from-stdout: expected a regular expression, found '{}': {}",
                                 pattern, reason));
  }
  expression_.reset(expression.release());
}

void IterationCounter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    begun_ = true;
    if (expression_ && line_.size() < kLongestLine) line_ += piece.substr(0, kLongestLine - line_.size());
    if (newline == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(newline + 1);
  }
}

void IterationCounter::finish() {
  if (begun_) end_line();
}

void IterationCounter::end_line() {
  bool matches = true;
  if (expression_) {
    regmatch_t whole = {0, static_cast<regoff_t>(line_.size())};
    matches = ::regexec(expression_.get(), line_.data(), 0, &whole, REG_STARTEND) == 0;
  }
  count_ += matches;
  line_.clear();
  begun_ = false;
}

}  // namespace plimsoll::cli
