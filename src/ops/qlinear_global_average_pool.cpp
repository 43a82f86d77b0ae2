#include <algorithm>

#include "kernels/byte_arithmetic.h"
#include "kernels/parallel.h"
#include "ops/layout.h"
#include "ops/pool_common.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return read_global_pool(c);
}

void infer(InferContext& c) {
  expect_qlinear_unary(c);
  if (!c.ranked(kUnaryX)) return c.set_unranked_output(0, c.type(kUnaryX));
  c.expect_rank(kUnaryX, 3, 2 + kMaxSpatial);
  const std::span<const Dim> x = c.dims(kUnaryX);
  std::vector<Dim> y(x.size(), Dim(1));
  const size_t channels = channel_axis(c.attrs<PoolAttrs>().window, x.size());
  y[0] = x[0];
  y[channels] = x[channels];
  c.set_output(0, c.type(kUnaryX), y);
}

// Sums over the pixels of up to kBlock channels at a time, which lie side by side.
constexpr int64_t kBlock = 256;
// Another thread takes longer to wake than to sum these up.
constexpr int64_t kFewElements = 1 << 18;

struct Mean {
  ElementType type;
  Quantization from, to;
  int64_t pixels;
  uint8_t operator()(int64_t sum) const {
    const double mean = pixels > 0 ? static_cast<double>(sum) / static_cast<double>(pixels) - from.zero : 0.0;
    return quantize_byte(type, to, static_cast<float>(mean * static_cast<double>(from.scale)));
  }
};

void run_channels_last(const RunContext& c, const Mean& mean, int64_t channels) {
  const TensorView& x = c.inputs[kUnaryX];
  const int64_t blocks = ceil_div(channels, kBlock);
  kernels::parallel_for(x.elements() < kFewElements ? 1 : c.threads, x.dims[0] * blocks, [&](int64_t task) {
    const int64_t image = task / blocks, first = task % blocks * kBlock;
    const int64_t count = std::min(kBlock, channels - first), at = image * mean.pixels * channels + first;
    int32_t sums[kBlock];
    kernels::sum_rows_8(x.as<uint8_t>() + at, x.type == ElementType::kInt8, mean.pixels, channels, count,
                        sums);
    for (int64_t k = 0; k < count; ++k)
      c.outputs[0].as<uint8_t>()[image * channels + first + k] = mean(sums[k]);
  });
}

void run(const RunContext& c) {
  const TensorView& x = c.inputs[kUnaryX];
  const WindowAttrs& w = c.attrs<PoolAttrs>().window;
  const int64_t channels = x.dims[channel_axis(w, x.rank())], lines = x.dims[0] * channels;
  if (lines == 0) return;
  const int64_t pixels = x.elements() / lines;
  const Mean mean{x.type, read_quantization(c, kUnaryXScale, kUnaryXZero),
                  read_quantization(c, kUnaryYScale, kUnaryYZero), pixels};
  constexpr int64_t kMostPixels = INT32_MAX / 256;
  if (w.channels_last && pixels <= kMostPixels) return run_channels_last(c, mean, channels);
  kernels::parallel_for(x.elements() < 65536 ? 1 : c.threads, lines, [&](int64_t line) {
    const int64_t step = w.channels_last ? channels : 1;
    const uint8_t* start =
        x.as<uint8_t>() +
        (w.channels_last ? line / channels * channels * pixels + line % channels : line * pixels);
    int64_t sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += byte_value(x.type, start[i * step]);
    c.outputs[0].as<uint8_t>()[line] = mean(sum);
  });
}

}  // namespace

extern const OpDef op_qlinear_global_average_pool = {
    .domain = kMicrosoftDomain,
    .name = "QLinearGlobalAveragePool",
    .inputs = {5, 5},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout_global_pool,
    .channels_last = true,
};

}  // namespace plimsoll
