#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace plimsoll::cli {

Progress::Progress(bool wanted)
    : wanted_(wanted && ::isatty(STDERR_FILENO) != 0), next_(Clock::now() + std::chrono::seconds(1)) {}

void Progress::tell(const std::string& stage, int64_t done, int64_t all) {
  if (!wanted_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(200);
  const std::string text = all > 0 ? fmt::format("{} {} of {} ({} %)", stage, done, all, done * 100 / all)
                                   : fmt::format("{} {}", stage, done);
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace plimsoll::cli
