// Notices a job that the kernel does not kill at its memory limit and that gets nowhere any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace plimsoll {

// Of a memory cgroup that has a limit, and of its processes.
struct ThrashFigures {
  int64_t usage_bytes = 0;
  int64_t file_bytes = 0;    // of these, held of files
  int64_t major_faults = 0;  // so far: times that a page of a mapped file had to be read
  double user_ms = 0;        // so far: CPU time in the program itself
  double cpu_ms = 0;         // and in the kernel
};

// As long as the kernel finds a page of the program's own code to drop, it kills nobody: the program faults
// the page in again, the kernel drops another, and so on, for minutes (docs/isolate.md has the figures). A
// job counts as thrashing when for three seconds on end, in every one of them,
// - it was near its limit (that charges met it is not counted everywhere: version 1 of Linux 6.18 does not),
// - it held next to nothing of files, and what it held was read in anew by faults,
// - and at most a tenth of its CPU time was its own.
// So a job that writes, reads or maps files larger than its limit is none: those hold the limit full of file
// pages.
class ThrashWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ThrashWatch(int64_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}

  void start(Clock::time_point now) noexcept { next_ = now + kWindow; }
  Clock::time_point next() const noexcept { return next_; }
  // Call at next(). True: it thrashes.
  bool add(Clock::time_point now, const ThrashFigures& figures) noexcept;

 private:
  static constexpr std::chrono::milliseconds kWindow{1000};

  bool is_bad(const ThrashFigures& now) const noexcept;

  int64_t limit_bytes_;
  Clock::time_point next_;
  std::optional<ThrashFigures> last_;
  int bad_windows_ = 0;
};

}  // namespace plimsoll
