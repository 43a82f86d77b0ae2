#include "quantize/block_rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plimsoll {

BlockParameters block_parameters(std::span<const float> block, int bits, bool symmetric) {
  float low = block[0], high = block[0];
  for (float x : block) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const auto middle = static_cast<float>(1 << (bits - 1));
  if (symmetric) {
    const float larger = std::fabs(high) > std::fabs(low) ? high : low;
    return {-larger / middle, middle};
  }
  low = std::min(low, 0.0f);
  high = std::max(high, 0.0f);
  const auto most = static_cast<float>((1 << bits) - 1);
  const float scale = (high - low) / most;
  const float zero = scale == 0 ? low : -low / scale;
  return {scale, std::round(std::clamp(zero, 0.0f, most))};
}

uint8_t block_number(float weight, const BlockParameters& p, int bits) {
  const float inverse = p.scale == 0 ? 0 : 1.0f / p.scale;
  const auto most = static_cast<float>((1 << bits) - 1);
  return static_cast<uint8_t>(std::clamp(std::round(weight * inverse + p.zero_point), 0.0f, most));
}

uint8_t hqq_number(float weight, const BlockParameters& p, int bits) {
  const auto most = static_cast<float>((1 << bits) - 1);
  return static_cast<uint8_t>(std::clamp(std::nearbyint(weight / p.scale + p.zero_point), 0.0f, most));
}

namespace {

constexpr float kNorm = 0.7f, kFirstBeta = 10.0f, kKappa = 1.01f;
constexpr int kTurns = 20;

float shrunk(float x, float beta) {
  const float size = std::fabs(x);
  return std::copysign(std::max(0.0f, size - std::pow(size + 1e-8f, kNorm - 1) / beta), x);
}

}  // namespace

BlockParameters hqq_parameters(std::span<const float> block, int bits) {
  const auto [low, high] = std::minmax_element(block.begin(), block.end());
  const auto most = static_cast<float>((1 << bits) - 1);
  const float width = *high - *low;
  const float inverse = std::min(most / (width == 0 ? most : width), 2e4f);
  BlockParameters best = {1.0f / inverse, std::nearbyint(-*low * inverse)};
  float zero = best.zero_point, beta = kFirstBeta;
  double best_error = INFINITY;
  for (int turn = 0; turn < kTurns; ++turn, beta *= kKappa) {
    double sum = 0, error = 0;
    for (float x : block) {
      const float q = std::clamp(std::nearbyint(x * inverse + zero), 0.0f, most);
      const float off = x - (q - zero) / inverse;
      error += std::fabs(off);
      sum += q - (x - shrunk(off, beta)) * inverse;
    }
    if (error >= best_error) break;
    best_error = error;
    best.zero_point = zero;
    zero = static_cast<float>(sum / static_cast<double>(block.size()));
  }
  return best;
}

}  // namespace plimsoll
