#include "kernels/parallel.h"
#include "ops/pool_common.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolAttrs>();
  read_pool(c, *a);
  a->window.channels_last = c.integer("channels_last", 0) != 0;
  a->count_padding = c.integer("count_include_pad", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  expect_qlinear_unary(c);
  infer_pool(c, kByteTypes);
}

// Elements of the window inside the padded input.
int64_t padded_count(const Window& w, const Spatial& at) {
  int64_t count = 1;
  for (size_t i = 0; i < w.rank; ++i) {
    const int64_t start = at[i] * w.stride[i] - w.begin[i];
    count *= std::min(w.kernel[i], ceil_div(w.in[i] + w.end[i] - start, w.dilation[i]));
  }
  return count;
}

void run(const RunContext& c) {
  const Window w = pool_window(c);
  const TensorView& x = c.inputs[kUnaryX];
  const Quantization from = read_quantization(c, kUnaryXScale, kUnaryXZero);
  const Quantization to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  const SpatialStrides in = strides_of(w.rank, w.channels, w.in, w.channels_last);
  const bool count_padding = c.attrs<PoolAttrs>().count_padding;
  for_each_window(w, [&](int64_t n, int64_t channel, const Spatial& at, int64_t y) {
    int64_t sum = 0, count = 0;
    for_each_tap(w, at, [&](const Spatial& place) {
      int64_t offset = n * in.batch + channel * in.channel;
      for (size_t i = 0; i < w.rank; ++i) offset += place[i] * in.spatial[i];
      sum += byte_value(x.type, x.as<uint8_t>()[offset]) - from.zero;
      ++count;
    });
    if (count_padding) count = padded_count(w, at);
    const double mean = count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0.0;
    c.outputs[0].as<uint8_t>()[y] =
        quantize_byte(x.type, to, static_cast<float>(mean * static_cast<double>(from.scale)));
  });
}

}  // namespace

extern const OpDef op_qlinear_average_pool = {
    .domain = kMicrosoftDomain,
    .name = "QLinearAveragePool",
    .inputs = {4, 5},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
