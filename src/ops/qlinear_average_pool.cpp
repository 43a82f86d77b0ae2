#include "ops/layout.h"
#include "ops/pool_lines.h"
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

template <typename T>
struct QuantizedAverage {
  const Quantization &from, &to_;
  ElementType type;
  uint8_t* y;
  bool count_padding;
  int64_t sums[kPoolBlock];

  void start(int64_t count) { std::fill_n(sums, count, int64_t{0}); }
  void take(const PoolTaps<T>& t) {
    for (int64_t i = t.first; i < t.last; ++i) sums[i] += t.x[(i - t.first) * t.step];
  }
  void finish(int64_t i, const PoolCounts& counts, int64_t to) {
    const int64_t count = count_padding ? counts.padded : counts.inside;
    const int64_t sum = sums[i] - counts.inside * from.zero;
    const double mean = count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0.0;
    y[to] = quantize_byte(type, to_, static_cast<float>(mean * static_cast<double>(from.scale)));
  }
};

void run(const RunContext& c) {
  const Window w = pool_window(c);
  const TensorView& x = c.inputs[kUnaryX];
  const Quantization from = read_quantization(c, kUnaryXScale, kUnaryXZero);
  const Quantization to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  const bool count_padding = c.attrs<PoolAttrs>().count_padding;
  const auto average = [&](auto tag) {
    using T = typename decltype(tag)::type;
    pool_lines(w, x.as<T>(),
               QuantizedAverage<T>{from, to, x.type, c.outputs[0].as<uint8_t>(), count_padding, {}},
               c.threads);
  };
  x.type == ElementType::kInt8 ? average(TypeTag<int8_t>{}) : average(TypeTag<uint8_t>{});
}

}  // namespace

extern const OpDef op_qlinear_average_pool = {
    .domain = kMicrosoftDomain,
    .name = "QLinearAveragePool",
    .inputs = {4, 5},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout_windowed,
    .channels_last = true,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
