// A line on a terminal that says how far a long command is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace plimsoll::cli {

// Shows nothing in the first second, nor where nobody watches. On stderr, so that results stay apart.
class Progress {
 public:
  explicit Progress(bool wanted);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  void tell(const std::string& stage, int64_t done, int64_t all);  // all: 0 if that is not known
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool wanted_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace plimsoll::cli
