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

void run(const RunContext& c) {
  const TensorView& x = c.inputs[kUnaryX];
  const WindowAttrs& w = c.attrs<PoolAttrs>().window;
  const int64_t channels = x.dims[channel_axis(w, x.rank())], lines = x.dims[0] * channels;
  if (lines == 0) return;
  const int64_t pixels = x.elements() / lines;
  const Quantization from = read_quantization(c, kUnaryXScale, kUnaryXZero);
  const Quantization to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  kernels::parallel_for(x.elements() < 65536 ? 1 : c.threads, lines, [&](int64_t line) {
    const int64_t step = w.channels_last ? channels : 1;
    const uint8_t* start =
        x.as<uint8_t>() +
        (w.channels_last ? line / channels * channels * pixels + line % channels : line * pixels);
    int64_t sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += byte_value(x.type, start[i * step]) - from.zero;
    const double mean = pixels > 0 ? static_cast<double>(sum) / static_cast<double>(pixels) : 0.0;
    c.outputs[0].as<uint8_t>()[line] =
        quantize_byte(x.type, to, static_cast<float>(mean * static_cast<double>(from.scale)));
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
