#include "runtime/calibrate.h"

#include <algorithm>
#include <cmath>

#include "prepare/lower.h"
#include "quantize/calibration.h"
#include "runtime/make_plan.h"
#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

constexpr int kEntropyNumbers = 128;
constexpr int kDefaultBins = 2048;

// One pass over the samples with a graph that tells numbers.
class Pass {
 public:
  Pass(const Env& env, const std::string& model, const QuantizeOptions& options, const std::string& stage,
       const std::function<void(Graph&)>& rewrite)
      : env_(env), model_(model), options_(options), stage_(stage), rewrite_(rewrite) {}

  // Calls f(observations, number of the sample).
  template <typename F>
  int64_t each(F&& f) {
    int64_t count = 0;
    std::map<std::string, Value> sample;
    while (next(sample, count)) {
      if (options_.progress) options_.progress(stage_, count, 0);
      f(run(sample, count), count);
      ++count;
      sample.clear();
    }
    return count;
  }
  int64_t told_bytes() const { return told_; }
  int64_t peak_bytes() const { return session_ ? session_->budget.report().peak_bytes : 0; }

 private:
  // The shapes of the first sample are told at once, so that what cannot fit is refused with the limit that
  // would do.
  void open(const std::map<std::string, Value>& sample) {
    SessionOptions session;
    session.memory_limit_bytes = options_.memory_limit_bytes;
    session.intra_op_threads = options_.threads;
    session.optimization_level = GraphOptimizationLevel::kBasic;
    const auto observed = [this](Graph& graph) {
      inline_functions(graph);
      rewrite_(graph);
    };
    const auto shapes = [&](const std::vector<ValueInfo>& inputs) {
      Shapes known;
      for (const auto& [name, value] : sample) {
        const auto is_it = [&given = name](const ValueInfo& input) { return input.name == given; };
        if (std::none_of(inputs.begin(), inputs.end(), is_it))
          fail(ErrorCode::kInvalidArgument, "there is no input '{}'", name);
      }
      for (const ValueInfo& input : inputs) {
        const auto value = sample.find(input.name);
        if (value != sample.end() && value->second && value->second.IsTensor())
          known[input.name] = value->second.GetShape();
      }
      return known;
    };
    session_ = std::make_unique<Session::Impl>(env_, ModelLocation{model_, {}, observed}, session, shapes);
  }

  bool next(std::map<std::string, Value>& sample, int64_t number) const {
    try {
      return options_.calibration->Next(sample);
    } catch (const Error& error) {
      fail(error.code(), "calibration sample {}: {}", number, error.what());
    }
  }

  Value run(const std::map<std::string, Value>& sample, int64_t number) {
    std::vector<Value> inputs, outputs(1);
    try {
      if (session_ == nullptr) open(sample);
      inputs.resize(session_->inputs.size());
      for (const auto& [name, value] : sample) inputs[session_->input_index(name)] = value;
      session_->fill_defaults(inputs);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i])
          fail(ErrorCode::kInvalidArgument, "input '{}' is not given", session_->inputs[i].name);
      }
      if (number == 0) tell(inputs);
      session_->run({}, {inputs, outputs});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) throw;
      fail(error.code(), "calibration sample {}: {}", number, error.what());
    }
    return outputs[0];
  }

  void tell(const std::vector<Value>& inputs) {
    Shapes shapes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].IsTensor()) return;
      shapes[session_->inputs[i].name] = inputs[i].GetShape();
    }
    Budget planning("planning", 0);
    told_ = make_plan(*session_->model, shapes, planning, options_.memory_limit_bytes, true).peak_bytes;
  }

  const Env& env_;
  std::string model_;
  const QuantizeOptions& options_;
  std::string stage_;
  std::function<void(Graph&)> rewrite_;
  std::unique_ptr<Session::Impl> session_;
  int64_t told_ = 0;
};

class Calibration {
 public:
  Calibration(const Env& env, const std::string& model, const std::vector<std::string>& names,
              const QuantizeOptions& options)
      : env_(env), model_(model), names_(names), options_(options), observed_(names.size()) {}

  Calibrated run() {
    find_ranges();
    if (options_.method != CalibrationMethod::kMinMax) count_bins();
    for (size_t i = 0; i < names_.size(); ++i) result_.statistics[names_[i]] = statistics(i);
    return std::move(result_);
  }

 private:
  void find_ranges() {
    Pass pass(env_, model_, options_, "sample", [&](Graph& graph) { observe_ranges(graph, names_); });
    result_.samples = pass.each([&](const Value& value, int64_t sample) {
      const auto* numbers = value.GetTensorData<float>();
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
    if (!is_empty && !(std::isfinite(numbers[0]) && std::isfinite(numbers[1])))
      fail(ErrorCode::kInvalidArgument,
           "calibration sample {}: value '{}': expected finite numbers, found {}", sample, name,
           std::isnan(numbers[0]) ? "NaN" : "an infinity");
    const bool averages = options_.moving_average > 0 && options_.method == CalibrationMethod::kMinMax;
    if (averages) {
      range.average(numbers, options_.moving_average);
    } else {
      range.merge(numbers);
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
    Pass pass(env_, model_, options_, "sample, second time",
              [&](Graph& graph) { observe_histograms(graph, names_, histograms_); });
    const int64_t samples = pass.each([&](const Value& value, int64_t) {
      const auto* counts = value.GetTensorData<int64_t>();
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

  void remember(const Pass& pass) {
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
  const std::vector<std::string>& names_;
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

}  // namespace plimsoll
