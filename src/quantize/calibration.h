// Calibration: sinks in the graph that tell a few numbers per value, and what thresholds follow from them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quantize/static.h"

namespace plimsoll {

// What is known of a value after all samples were seen.
struct ObservedRange {
  float low = INFINITY, high = -INFINITY, nearest = INFINITY;  // nearest: the least distance from zero
  bool has_infinities = false;                                 // then the others say nothing
  bool is_empty() const { return !(low <= high); }
  void merge(std::span<const float> numbers);  // as ObserveRange tells them
  // The same for a moving average: `share` is how much the newest counts.
  void average(std::span<const float> numbers, double share);
};

// The bins of one value.
struct Histogram {
  float low = 0, high = 0;
  bool absolute = false;
  std::vector<int64_t> counts;
  float edge(size_t i) const;  // the first is low, the last high
};

// The model's outputs become one: the numbers of all values, one after the other, as floats. The graph is as
// it was read, functions inlined. Values are found by name.
void observe_ranges(Graph& graph, std::span<const std::string> values);
// Likewise the counts of their bins, as int64. All histograms have equally many.
void observe_histograms(Graph& graph, std::span<const std::string> values,
                        std::span<const Histogram> histograms);
inline constexpr size_t kRangeNumbers = 3;
// The model's outputs become x^T * x of these values, whose last axes have so many elements, as floats.
struct ObservedProduct {
  std::string value;
  int64_t k = 0;
};
void observe_products(Graph& graph, std::span<const ObservedProduct> values);

// Where to cut: the range that loses the least information when it gets `quantized_bins` numbers.
RealRange entropy_range(const Histogram& histogram, const ObservedRange& observed, int quantized_bins);
// Where this part of the elements, in percent, is kept.
RealRange percentile_range(const Histogram& histogram, const ObservedRange& observed, double percentile);
float deviation(const Histogram& histogram);

}  // namespace plimsoll
