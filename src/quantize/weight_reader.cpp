#include "quantize/weight_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll {

bool is_float_data(const TensorData& data) {
  return data.type == ElementType::kFloat || data.type == ElementType::kFloat16 ||
         data.type == ElementType::kBFloat16;
}

std::span<const float> WeightReader::read(const TensorData& data, int64_t first, int64_t count) {
  const std::span<float> out(piece_.data(), static_cast<size_t>(count));
  if (data.type == ElementType::kFloat) {
    std::memcpy(out.data(), data.bytes.data() + first * 4, out.size_bytes());
    return out;
  }
  visit_float(data.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      T element;
      std::memcpy(&element, data.bytes.data() + (first + i) * static_cast<int64_t>(sizeof(T)),
                  sizeof element);
      out[static_cast<size_t>(i)] = static_cast<float>(element);
    }
  });
  return out;
}

void WeightReader::drop(const TensorData& data, int64_t first, int64_t count) const {
  if (!drop_ || !data.in_file) return;
  const int64_t size = element_bits(data.type) / 8;
  drop_(data.bytes.subspan(static_cast<size_t>(first * size), static_cast<size_t>(count * size)));
}

ChannelShape::ChannelShape(std::span<const int64_t> dims, int64_t axis, int64_t block) : block_(block) {
  if (block > 0) {
    columns_ = dims[1];
    along_rows_ = axis == 0;
    const auto blocks = [&](int64_t size) { return (size + block - 1) / block; };
    channels = along_rows_ ? blocks(dims[0]) * dims[1] : dims[0] * blocks(dims[1]);
    inner = block;
    return;
  }
  if (axis < 0) {
    for (int64_t dim : dims) inner *= dim;
    return;
  }
  for (size_t i = 0; i < dims.size(); ++i)
    (static_cast<int64_t>(i) < axis ? outer : static_cast<int64_t>(i) > axis ? inner : channels) *= dims[i];
}

int64_t ChannelShape::channel_of(int64_t element) const {
  if (block_ == 0) return element / inner % channels;
  const int64_t row = element / columns_, column = element % columns_;
  if (along_rows_) return row / block_ * columns_ + column;
  return row * ((columns_ + block_ - 1) / block_) + column / block_;
}

int64_t ChannelShape::run_at(int64_t element) const {
  if (block_ == 0) return inner - element % inner;
  const int64_t column = element % columns_;
  return along_rows_ ? 1 : std::min(block_ - column % block_, columns_ - column);
}

namespace {

// Calls f(span, channel, number of the first) for runs of one channel.
template <typename F>
void each_run(WeightReader& reader, const TensorData& data, const ChannelShape& shape, F&& f) {
  reader.each(data, [&](std::span<const float> x, int64_t first) {
    for (int64_t at = 0; at < static_cast<int64_t>(x.size());) {
      const int64_t element = first + at;
      const int64_t run = std::min(shape.run_at(element), static_cast<int64_t>(x.size()) - at);
      f(x.subspan(static_cast<size_t>(at), static_cast<size_t>(run)),
        static_cast<size_t>(shape.channel_of(element)), element);
      at += run;
    }
  });
}

}  // namespace

std::vector<RealRange> channel_ranges(WeightReader& reader, const TensorData& data, const ChannelShape& shape,
                                      std::string_view name) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<RealRange> ranges(static_cast<size_t>(shape.channels), {kInfinity, -kInfinity});
  each_run(reader, data, shape, [&](std::span<const float> x, size_t channel, int64_t first) {
    RealRange range = ranges[channel];
    float suspect = 0;  // 0 times what is not finite is not 0
    for (float value : x) {
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
      suspect += value * 0.0f;
    }
    ranges[channel] = range;
    if (suspect == 0) return;
    const auto bad = std::find_if(x.begin(), x.end(), [](float value) { return !std::isfinite(value); });
    fail(ErrorCode::kInvalidModel, "tensor '{}': expected finite numbers to quantize, found {} at element {}",
         name, *bad, first + (bad - x.begin()));
  });
  for (RealRange& range : ranges) {
    if (range.low > range.high) range = {};  // no element
  }
  return ranges;
}

std::vector<float> channel_deviations(WeightReader& reader, const TensorData& data,
                                      const ChannelShape& shape) {
  const auto channels = static_cast<size_t>(shape.channels);
  std::vector<double> sums(channels), squares(channels);
  each_run(reader, data, shape, [&](std::span<const float> x, size_t channel, int64_t) {
    for (float value : x) {
      sums[channel] += value;
      squares[channel] += static_cast<double>(value) * value;
    }
  });
  const double count = std::max(1.0, static_cast<double>(shape.outer * shape.inner));
  std::vector<float> result(channels);
  for (size_t i = 0; i < channels; ++i) {
    const double mean = sums[i] / count;
    result[i] = static_cast<float>(std::sqrt(std::max(0.0, squares[i] / count - mean * mean)));
  }
  return result;
}

void quantize_channels(WeightReader& reader, const TensorData& data, const ChannelShape& shape,
                       std::span<const LinearParameters> parameters, ElementType type, std::byte* out) {
  each_run(reader, data, shape, [&](std::span<const float> x, size_t channel, int64_t first) {
    quantize_linear(x, parameters[channel], type, out, first);
  });
}

}  // namespace plimsoll
