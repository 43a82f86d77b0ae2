// Learning rates from step to step, as PyTorch and Hugging Face have them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "plimsoll/training.h"

namespace plimsoll {
namespace {

// From one factor to another along half a cosine.
double along_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * std::clamp(part, 0.0, 1.0))) / 2;
}

double one_cycle(const ScheduleOptions& s, double step) {
  const double end = static_cast<double>(std::max<int64_t>(s.total_steps, 2)) - 1;
  const double peak = std::max(1.0, s.peak_fraction * static_cast<double>(s.total_steps) - 1);
  if (step <= peak) return along_cosine(s.start_factor, 1, step / peak);
  return along_cosine(1, s.final_factor, (step - peak) / std::max(1.0, end - peak));
}

}  // namespace

double schedule_factor(const ScheduleOptions& s, int64_t step) {
  using Type = ScheduleOptions::Type;
  if (s.type == Type::kOneCycle) return one_cycle(s, static_cast<double>(step));
  if (step < s.warmup_steps) return static_cast<double>(step) / static_cast<double>(s.warmup_steps);
  const auto after = static_cast<double>(step - s.warmup_steps);
  const double part =
      std::min(1.0, after / static_cast<double>(std::max<int64_t>(1, s.total_steps - s.warmup_steps)));
  switch (s.type) {
    case Type::kLinear:
      return 1 + (s.final_factor - 1) * part;
    case Type::kCosine:
      return along_cosine(1, s.final_factor, part);
    case Type::kStep:
      return std::pow(s.gamma, std::floor(after / static_cast<double>(std::max<int64_t>(1, s.step_size))));
    case Type::kExponential:
      return std::pow(s.gamma, after);
    default:
      return 1;
  }
}

}  // namespace plimsoll
