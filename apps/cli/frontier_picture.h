// Bytes against loss, as a picture.
#pragma once

#include <plimsoll/quantize.h>

#include <optional>
#include <string>

namespace plimsoll::cli {

// SVG: a point for every candidate, the chosen one filled, a line at the loss that was allowed.
std::string frontier_picture(const QuantizeReport& report, std::optional<double> max_loss);

}  // namespace plimsoll::cli
