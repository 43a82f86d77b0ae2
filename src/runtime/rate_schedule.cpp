#include <cstdio>
#include <sstream>

#include "runtime/training_session_impl.h"

namespace plimsoll {

void RateSchedule::evaluate(double loss) {
  if (options.type != ScheduleOptions::Type::kPlateau) return;
  if (!has_best || loss < best * (1 - options.threshold)) {
    best = loss, bad = 0, has_best = true;
    return;
  }
  if (++bad <= options.patience) return;
  factor *= options.gamma;
  bad = 0;
}

// Every bit of the numbers.
std::string RateSchedule::to_text() const {
  const ScheduleOptions& o = options;
  char text[512];
  std::snprintf(text, sizeof text, "%d %ld %ld %a %ld %a %a %a %ld %a %a %ld %a %a %ld %d",
                static_cast<int>(o.type), static_cast<long>(o.warmup_steps), static_cast<long>(o.total_steps),
                o.final_factor, static_cast<long>(o.step_size), o.gamma, o.peak_fraction, o.start_factor,
                static_cast<long>(o.patience), o.threshold, initial_rate, static_cast<long>(step), best,
                factor, static_cast<long>(bad), has_best ? 1 : 0);
  return text;
}

void RateSchedule::from_text(const std::string& text) {
  int type = 0, known = 0;
  long warmup = 0, total = 0, size = 0, patience = 0, at = 0, worse = 0;
  ScheduleOptions o;
  RateSchedule read;
  const int found =
      std::sscanf(text.c_str(), "%d %ld %ld %la %ld %la %la %la %ld %la %la %ld %la %la %ld %d", &type,
                  &warmup, &total, &o.final_factor, &size, &o.gamma, &o.peak_fraction, &o.start_factor,
                  &patience, &o.threshold, &read.initial_rate, &at, &read.best, &read.factor, &worse, &known);
  if (found != 16 || type < 0 || type > static_cast<int>(ScheduleOptions::Type::kPlateau))
    fail(ErrorCode::kInvalidModel, "checkpoint: its schedule cannot be read: '{}'", text);
  o.type = static_cast<ScheduleOptions::Type>(type);
  o.warmup_steps = warmup, o.total_steps = total, o.step_size = size, o.patience = patience;
  read.options = o;
  read.step = at, read.bad = worse, read.has_best = known != 0;
  *this = read;
}

}  // namespace plimsoll
