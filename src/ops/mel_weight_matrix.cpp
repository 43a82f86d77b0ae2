#include <cmath>
#include <cstring>

#include "ops/fourier.h"
#include "ops/movement.h"
#include "ops/signal_window.h"

namespace plimsoll {
namespace {

constexpr size_t kBands = 0, kLength = 1, kRate = 2, kLow = 3, kHigh = 4;

const void* attrs(AttrContext& c) {
  auto* type = c.make<ElementType>();
  *type = read_output_type(c);
  return type;
}

void infer(InferContext& c) {
  for (size_t i : {kBands, kLength, kRate}) expect_scalar(c, i, kIndexTypes);
  for (size_t i : {kLow, kHigh}) expect_scalar(c, i, kFloatTypes);
  const auto bands = known_scalar(c, kBands), length = known_scalar(c, kLength);
  for (const auto& number : {bands, length}) {
    if (number && number->is_constant() && number->value() < 0)
      c.reject("num_mel_bins and dft_length: expected at least 0, found {}", number->value());
  }
  c.set_output(0, c.attrs<ElementType>(),
               std::vector<Dim>{length ? floor_div(*length, Dim(2)) + 1 : c.unknown("spectrum"),
                                bands ? *bands : c.unknown("bands")});
}

struct Scale {
  double low, step;
  double hertz(int64_t i) const {
    return 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
  }
};

double number_at(const TensorView& view) {
  return visit_float(view.type, [&](auto tag) {
    return static_cast<double>(load_element(view.as<typename decltype(tag)::type>()[0]));
  });
}

// The spectrum's bin that edge i of the triangles falls into.
int64_t bin_of(const RunContext& c, const Scale& scale, int64_t i) {
  const double length = static_cast<double>(index_at(c.inputs[kLength], 0));
  const double rate = static_cast<double>(index_at(c.inputs[kRate], 0));
  const double bin = std::floor((length + 1) * scale.hertz(i) / rate);
  const int64_t bins = c.outputs[0].dims[0];
  if (!(bin >= 0 && bin < static_cast<double>(bins) + 1))
    fail(ErrorCode::kInvalidArgument, "{}: edge {} of the mel bands lies in bin {} of {}", c.node->label(), i,
         bin, bins);
  return static_cast<int64_t>(bin);
}

// A triangle with its peak at `center`; column `band`.
void write_band(const TensorView& y, int64_t band, int64_t left, int64_t center, int64_t right) {
  const int64_t bands = y.dims[1];
  if (center == left) write_number(y, center * bands + band, 1);
  for (int64_t j = left; center > left && j <= center; ++j)
    write_number(y, j * bands + band, static_cast<double>(j - left) / static_cast<double>(center - left));
  for (int64_t j = center; j < right; ++j)
    write_number(y, j * bands + band, static_cast<double>(right - j) / static_cast<double>(right - center));
}

void run(const RunContext& c) {
  const TensorView& y = c.outputs[0];
  if (y.elements() == 0) return;
  std::memset(y.data, 0, static_cast<size_t>(y.bytes()));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number_at(c.inputs[kLow])), high = mel(number_at(c.inputs[kHigh]));
  const int64_t bands = y.dims[1];
  const Scale scale{low, (high - low) / static_cast<double>(bands + 2)};
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t left = bin_of(c, scale, i), center = bin_of(c, scale, i + 1),
                  right = bin_of(c, scale, i + 2);
    if (center >= y.dims[0] || center < left || right < center)
      fail(ErrorCode::kInvalidArgument, "{}: band {} runs from bin {} over {} to {} of {}", c.node->label(),
           i, left, center, right, y.dims[0]);
    write_band(y, i, left, center, right);
  }
}

}  // namespace

extern const OpDef op_mel_weight_matrix = {
    .name = "MelWeightMatrix",
    .inputs = {5, 5},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
