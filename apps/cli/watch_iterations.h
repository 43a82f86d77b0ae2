// Counts iterations in what a command writes.
#pragma once

#include <regex.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace plimsoll::cli {

// Counts lines: all of them, or those that match a pattern (watch_pattern.h). Bytes may come in any pieces.
// Of a line only the first 4,096 bytes are looked at.
class IterationCounter {
 public:
  IterationCounter() = default;                           // every line
  explicit IterationCounter(const std::string& pattern);  // throws UsageError
  void add(std::string_view bytes);
  void finish();  // what came last without a newline is a line too
  int64_t count() const { return count_; }

 private:
  void end_line();

  struct Free {
    void operator()(regex_t* expression) const {
      ::regfree(expression);
      delete expression;
    }
  };
  std::unique_ptr<regex_t, Free> expression_;
  std::string line_;
  bool begun_ = false;
  int64_t count_ = 0;
};

}  // namespace plimsoll::cli
