// Weights read piece by piece as floats, so that a tensor larger than the memory can be gone through.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "quantize/linear.h"

namespace plimsoll {

// Lets go of pages of a file that have been read.
using DropPages = std::function<void(std::span<const std::byte>)>;

// Whether a tensor's elements are floats of 16 or 32 bits.
bool is_float_data(const TensorData& data);

class WeightReader {
 public:
  static constexpr int64_t kPiece = 1 << 18;  // elements

  // One that plans reads nothing: it tells what the work takes without doing it.
  explicit WeightReader(DropPages drop = {}, bool plans = false)
      : drop_(std::move(drop)), plans_(plans), piece_(plans ? 0 : kPiece) {}
  // Whoever reads with read() asks this first.
  bool plans() const { return plans_; }
  // Calls f(span of floats, number of the first) in order; pages behind are dropped. The span is valid during
  // the call. Never calls it when it plans.
  template <typename F>
  void each(const TensorData& data, F&& f) {
    if (plans_) return;
    const int64_t count = data.view().elements();
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t size = std::min(kPiece, count - at);
      f(read(data, at, size), at);
      drop(data, at, size);
    }
    drop(data, 0, count);  // pages that two pieces share
  }
  // Any part of it, at most kPiece elements; valid until the next call.
  std::span<const float> read(const TensorData& data, int64_t first, int64_t count);
  void drop(const TensorData& data, int64_t first, int64_t count) const;

 private:
  DropPages drop_;
  bool plans_;
  std::vector<float> piece_;
};

// A tensor as [outer, channels, inner]: what per-channel quantization along `axis` sees. One channel without
// an axis. With a block: a matrix, of which so many elements along the axis are a channel, in the order of
// the matrix of their scales.
struct ChannelShape {
  int64_t outer = 1, channels = 1, inner = 1;
  ChannelShape(std::span<const int64_t> dims, int64_t axis, int64_t block = 0);
  int64_t channel_of(int64_t element) const;
  int64_t run_at(int64_t element) const;  // so many from here on are of one channel

 private:
  int64_t block_ = 0, columns_ = 0;
  bool along_rows_ = false;  // blocks of rows have as many columns as the matrix
};

// The least and the largest element of every channel; what is not finite is an Error (kInvalidModel) that
// names the tensor.
std::vector<RealRange> channel_ranges(WeightReader& reader, const TensorData& data, const ChannelShape& shape,
                                      std::string_view name);
// The standard deviation of the elements of every channel, for float8.
std::vector<float> channel_deviations(WeightReader& reader, const TensorData& data,
                                      const ChannelShape& shape);
// All elements to `type`, with the parameters of their channel.
void quantize_channels(WeightReader& reader, const TensorData& data, const ChannelShape& shape,
                       std::span<const LinearParameters> parameters, ElementType type, std::byte* out);

}  // namespace plimsoll
