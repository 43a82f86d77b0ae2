// The scale and zero point that DynamicQuantizeLinear finds: 8 bits, unsigned, from the range with zero in
// it.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/quantize.h"

namespace plimsoll {

struct DynamicScale {
  float scale = 1;
  int32_t zero_point = 0;
};

// A tensor without elements, or of zeros, has a range of zero: then any scale will do.
inline DynamicScale dynamic_scale(const float* x, int64_t count, int threads) {
  const kernels::FloatRange range = kernels::range_with_zero(x, count, threads);
  DynamicScale result;
  result.scale = range.most == range.least ? 1.0f / 255.0f : (range.most - range.least) / 255.0f;
  const float zero = std::clamp(0.0f - range.least / result.scale, 0.0f, 255.0f);
  result.zero_point = std::isnan(zero) ? 0 : static_cast<int32_t>(std::rint(zero));
  return result;
}

}  // namespace plimsoll
