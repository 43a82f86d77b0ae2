// Which layers stay floats so that a smaller model loses no more than it may.
#pragma once

#include "plimsoll/quantize.h"

namespace plimsoll {

// Quantizes with the worst layers left out, as few as the options' max_loss and as many as their target_bytes
// allow. `options` are those of one quantization; `quantize` does it, to a file. Throws kInvalidArgument if
// there is no solution; then nothing is written.
using QuantizeOnce = std::function<QuantizeReport(const std::string& output, const QuantizeOptions& options)>;
QuantizeReport quantize_to_target(const Env& env, const std::string& input, const std::string& output,
                                  const QuantizeOptions& options, const QuantizeOnce& quantize);

}  // namespace plimsoll
