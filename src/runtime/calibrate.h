// Runs a model on samples and finds the ranges of its values.
#pragma once

#include "plimsoll/quantize.h"
#include "quantize/static.h"

namespace plimsoll {

struct Calibrated {
  Statistics statistics;
  int64_t samples = 0;
  int64_t told_bytes = 0, peak_bytes = 0;  // told for the first sample, before it ran
};

// Of the values that `names` names. Inside the limit of the options; what cannot fit is refused before
// anything runs. A value with infinities has no range, which its statistics say. Throws kInvalidArgument if
// there are no samples, or one does not fit the model, or a value has a NaN.
Calibrated calibrate(const Env& env, const std::string& model, const std::vector<std::string>& names,
                     const QuantizeOptions& options);

// The smallest limit that it would do with, for the next sample, which it takes from the reader. Runs
// nothing.
int64_t smallest_calibration_bytes(const Env& env, const std::string& model,
                                   const std::vector<std::string>& names, const QuantizeOptions& options);

}  // namespace plimsoll
