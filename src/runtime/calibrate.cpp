#include "runtime/calibrate.h"

#include <algorithm>
#include <cmath>

#include "quantize/calibration.h"
#include "runtime/sample_pass.h"

namespace plimsoll {
namespace {

constexpr int kEntropyNumbers = 128;
constexpr int kDefaultBins = 2048;

SamplePassOptions pass_options(const QuantizeOptions& options) {
  SamplePassOptions pass;
  pass.reader = options.calibration;
  pass.progress = options.progress;
  pass.memory_limit_bytes = options.memory_limit_bytes;
  pass.threads = options.threads;
  return pass;
}

SamplePassOptions range_options(const std::vector<std::string>& names, const QuantizeOptions& options) {
  SamplePassOptions pass = pass_options(options);
  pass.rewrite = [&](Graph& graph) { observe_ranges(graph, names); };
  return pass;
}

class Calibration {
 public:
  Calibration(const Env& env, const std::string& model, const std::vector<std::string>& names,
              const QuantizeOptions& options)
      : env_(env), model_(model), names_(names), options_(options), observed_(names.size()) {}

  Calibrated run() {
    find_ranges();
    leave_infinite();
    if (options_.method != CalibrationMethod::kMinMax && !names_.empty()) count_bins();
    for (size_t i = 0; i < names_.size(); ++i) result_.statistics[names_[i]] = statistics(i);
    return std::move(result_);
  }

 private:
  void find_ranges() {
    SamplePass pass(env_, model_, range_options(names_, options_));
    result_.samples = pass.each([&](const std::vector<Value>& outputs, int64_t sample) {
      const auto* numbers = outputs[0].GetTensorData<float>();
      for (size_t i = 0; i < names_.size(); ++i)
        see({numbers + i * kRangeNumbers, kRangeNumbers}, observed_[i], names_[i], sample);
    });
    if (result_.samples == 0)
      fail(ErrorCode::kInvalidArgument, "calibration: expected at least one sample, found none");
    remember(pass);
  }

  void see(std::span<const float> numbers, ObservedRange& range, const std::string& name,
           int64_t sample) const {
    const bool is_empty = numbers[0] > numbers[1];
    if (std::isnan(numbers[0]) || std::isnan(numbers[1]))
      fail(ErrorCode::kInvalidArgument, "calibration sample {}: value '{}': expected numbers, found NaN",
           sample, name);
    range.has_infinities |= !is_empty && (std::isinf(numbers[0]) || std::isinf(numbers[1]));
    if (range.has_infinities) return;
    const bool averages = options_.moving_average > 0 && options_.method == CalibrationMethod::kMinMax;
    if (averages) {
      range.average(numbers, options_.moving_average);
    } else {
      range.merge(numbers);
    }
  }

  // Masks of attention have them.
  void leave_infinite() {
    for (size_t i = names_.size(); i-- > 0;) {
      if (!observed_[i].has_infinities) continue;
      result_.statistics[names_[i]].has_infinities = true;
      names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(i));
      observed_.erase(observed_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  bool counts_distances() const {
    return options_.method == CalibrationMethod::kPercentile && options_.symmetric_calibration;
  }

  void count_bins() {
    if (!options_.calibration->Rewind())
      fail(ErrorCode::kInvalidArgument,
           "calibration: this method goes through the samples twice: expected a reader that can begin anew");
    const int bins = options_.histogram_bins > 0 ? options_.histogram_bins : kDefaultBins;
    if (options_.method == CalibrationMethod::kEntropy && bins < kEntropyNumbers)
      fail(ErrorCode::kInvalidArgument, "calibration by entropy: expected {} bins or more, found {}",
           kEntropyNumbers, bins);
    for (const ObservedRange& range : observed_) histograms_.push_back(bins_for(range, bins));
    SamplePassOptions settings = pass_options(options_);
    settings.stage = "sample, second time";
    settings.rewrite = [&](Graph& graph) { observe_histograms(graph, names_, histograms_); };
    SamplePass pass(env_, model_, settings);
    const int64_t samples = pass.each([&](const std::vector<Value>& outputs, int64_t) {
      const auto* counts = outputs[0].GetTensorData<int64_t>();
      for (Histogram& histogram : histograms_) {
        for (int64_t& count : histogram.counts) count += *counts++;
      }
    });
    if (samples != result_.samples)
      fail(ErrorCode::kInvalidArgument, "calibration: {} samples the first time, {} the second",
           result_.samples, samples);
    remember(pass);
  }

  Histogram bins_for(const ObservedRange& range, int bins) const {
    Histogram histogram;
    histogram.counts.resize(static_cast<size_t>(bins));
    histogram.absolute = counts_distances();
    const float most = range.is_empty() ? 0 : std::max(std::fabs(range.low), std::fabs(range.high));
    histogram.low = histogram.absolute && !range.is_empty() ? range.nearest : -most;
    histogram.high = most;
    // Of one number alone, as numpy has it.
    if (!(histogram.low < histogram.high)) histogram.low -= 0.5f, histogram.high += 0.5f;
    return histogram;
  }

  void remember(const SamplePass& pass) {
    result_.told_bytes = std::max(result_.told_bytes, pass.told_bytes());
    result_.peak_bytes = std::max(result_.peak_bytes, pass.peak_bytes());
  }

  ValueStatistics statistics(size_t i) const {
    const ObservedRange& range = observed_[i];
    if (range.is_empty()) return {};
    ValueStatistics found = {{range.low, range.high}, 0};
    if (options_.method == CalibrationMethod::kEntropy)
      found.range = entropy_range(histograms_[i], range, kEntropyNumbers);
    if (options_.method == CalibrationMethod::kPercentile)
      found.range = percentile_range(histograms_[i], range, options_.percentile);
    if (options_.method == CalibrationMethod::kDistribution) found.deviation = deviation(histograms_[i]);
    if (options_.symmetric_calibration && options_.method == CalibrationMethod::kMinMax) {
      found.range.high = std::max(std::fabs(found.range.low), std::fabs(found.range.high));
      found.range.low = -found.range.high;
    }
    return found;
  }

  const Env& env_;
  const std::string& model_;
  std::vector<std::string> names_;
  const QuantizeOptions& options_;
  std::vector<ObservedRange> observed_;
  std::vector<Histogram> histograms_;
  Calibrated result_;
};

}  // namespace

Calibrated calibrate(const Env& env, const std::string& model, const std::vector<std::string>& names,
                     const QuantizeOptions& options) {
  if (options.calibration == nullptr)
    fail(ErrorCode::kInvalidArgument, "static quantization: expected samples for calibration, found none");
  if (options.percentile <= 0 || options.percentile > 100)
    fail(ErrorCode::kInvalidArgument, "percentile: expected more than 0 and at most 100, found {}",
         options.percentile);
  return Calibration(env, model, names, options).run();
}

int64_t smallest_calibration_bytes(const Env& env, const std::string& model,
                                   const std::vector<std::string>& names, const QuantizeOptions& options) {
  return SamplePass(env, model, range_options(names, options)).needs().smallest_limit_bytes;
}

}  // namespace plimsoll
