#include "isolate/thrash_watch.h"

#include <algorithm>

namespace plimsoll {

bool ThrashWatch::add(Clock::time_point now, const ThrashFigures& figures) noexcept {
  constexpr int kPatienceWindows = 3;
  bad_windows_ = last_ && is_bad(figures) ? bad_windows_ + 1 : 0;
  last_ = figures;
  next_ = now + kWindow;
  return bad_windows_ >= kPatienceWindows;
}

bool ThrashWatch::is_bad(const ThrashFigures& now) const noexcept {
  constexpr int64_t kPage = 4096;
  constexpr int64_t kFewFileBytes = int64_t{4} << 20;
  constexpr int64_t kFewFilePart = 32;  // of the limit
  constexpr int64_t kPagesRead = 16;    // by one fault, with what the kernel reads ahead; often twice as many
  constexpr int64_t kFewFaults = 8;
  constexpr double kNearPart = 0.75, kOwnPart = 0.1;
  const int64_t faults = now.major_faults - last_->major_faults;
  const double cpu_ms = now.cpu_ms - last_->cpu_ms;
  return static_cast<double>(now.usage_bytes) >= kNearPart * static_cast<double>(limit_bytes_) &&
         now.file_bytes <= std::max(kFewFileBytes, limit_bytes_ / kFewFilePart) && faults >= kFewFaults &&
         faults * kPagesRead * kPage >= now.file_bytes && cpu_ms > 0 &&
         now.user_ms - last_->user_ms <= kOwnPart * cpu_ms;
}

}  // namespace plimsoll
