#include "quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr int64_t kRowsAtOnce = 128;  // whose losses reach the rows behind them together

double dot(const double* a, const double* b, int64_t count) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

// H = R * R^T with R an upper triangle, from the last row on.
void factor_from_below(double* h, int64_t k) {
  for (int64_t j = k - 1; j >= 0; --j) {
    double* row = h + j * k;
    const int64_t rest = k - 1 - j;
    const double square = row[j] - dot(row + j + 1, row + j + 1, rest);
    if (!(square > 0) || !std::isfinite(square))
      fail(ErrorCode::kInvalidArgument, "GPTQ: expected inputs that are finite, found sums that are not");
    row[j] = std::sqrt(square);
    for (int64_t i = 0; i < j; ++i) {
      double* other = h + i * k;
      other[j] = (other[j] - dot(other + j + 1, row + j + 1, rest)) / row[j];
    }
  }
}

void invert_upper(double* r, int64_t k) {
  std::vector<double> old(static_cast<size_t>(k));
  for (int64_t i = k - 1; i >= 0; --i) {
    double* row = r + i * k;
    const double inverse = 1 / row[i];
    std::copy(row + i + 1, row + k, old.begin());
    std::fill(row, row + k, 0.0);
    row[i] = inverse;
    for (int64_t m = i + 1; m < k; ++m) {
      const double by = -inverse * old[static_cast<size_t>(m - i - 1)];
      const double* below = r + m * k;
      for (int64_t j = m; j < k; ++j) row[j] += by * below[j];
    }
  }
}

}  // namespace

void invert_and_factor(std::span<double> h, int64_t k, double damping) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    double& own = h[static_cast<size_t>(i * k + i)];
    if (own == 0) own = 1;  // an input that is always 0: no row matters to it
    sum += own;
  }
  for (int64_t i = 0; i < k; ++i) h[static_cast<size_t>(i * k + i)] += damping * sum / static_cast<double>(k);
  factor_from_below(h.data(), k);
  invert_upper(h.data(), k);
}

int64_t gptq_scratch_bytes(int64_t block, int64_t width) {
  const int64_t rows = std::max(kRowsAtOnce, block);
  return rows * width * 4 + block * 4 + width * static_cast<int64_t>(sizeof(BlockParameters));
}

void gptq_round(const GptqWeights& weights, std::span<const double> factor, const GptqRules& rules) {
  const int64_t k = weights.k, width = weights.width, rows_at_once = std::max(kRowsAtOnce, weights.block);
  float* w = weights.w.data();
  std::vector<float> lost(static_cast<size_t>(rows_at_once * width)),
      column(static_cast<size_t>(weights.block));
  std::vector<BlockParameters> parameters(static_cast<size_t>(width));
  const auto take_over = [&](int64_t from, int64_t to, const float* loss) {
    const auto by = static_cast<float>(factor[static_cast<size_t>(from * k + to)]);
    float* row = w + to * width;
    for (int64_t c = 0; c < width; ++c) row[c] -= by * loss[c];
  };
  for (int64_t first = 0; first < k; first += rows_at_once) {
    const int64_t end = std::min(first + rows_at_once, k);
    for (int64_t i = first; i < end; ++i) {
      if (i % weights.block == 0) {
        const int64_t rows = std::min(weights.block, k - i);
        for (int64_t c = 0; c < width; ++c) {
          for (int64_t r = 0; r < rows; ++r) column[static_cast<size_t>(r)] = w[(i + r) * width + c];
          parameters[static_cast<size_t>(c)] =
              rules.parameters({column.data(), static_cast<size_t>(rows)}, i / weights.block, c);
        }
      }
      float* loss = lost.data() + (i - first) * width;
      const auto own = static_cast<float>(factor[static_cast<size_t>(i * k + i)]);
      for (int64_t c = 0; c < width; ++c) {
        const BlockParameters& p = parameters[static_cast<size_t>(c)];
        const float weight = w[i * width + c];
        const uint8_t number = block_number(weight, p, weights.bits);
        rules.store(i, c, number);
        loss[c] = (weight - (static_cast<float>(number) - p.zero_point) * p.scale) / own;
      }
      for (int64_t j = i + 1; j < end; ++j) take_over(i, j, loss);
    }
    for (int64_t j = end; j < k; ++j) {
      for (int64_t i = first; i < end; ++i) take_over(i, j, lost.data() + (i - first) * width);
    }
  }
}

}  // namespace plimsoll
