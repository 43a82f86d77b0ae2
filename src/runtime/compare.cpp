#include <algorithm>
#include <cmath>

#include "ops/observe_difference.h"
#include "ops/registry.h"
#include "plimsoll/quantize.h"
#include "prepare/lower.h"
#include "quantize/lockstep.h"
#include "runtime/sample_pass.h"

namespace plimsoll {
namespace {

// Sums over the samples.
struct Sums {
  std::array<double, kDifferenceNumbers> numbers{};
  int64_t unlike_shapes = 0;

  void add(const double* sample) {
    if (sample[kDifferenceCount] < 0) {
      ++unlike_shapes;
      return;
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i != kDifferenceLargest) numbers[i] += sample[i];
    }
    numbers[kDifferenceLargest] = std::max(numbers[kDifferenceLargest], sample[kDifferenceLargest]);
  }
  double sqnr() const {
    if (numbers[kDifferenceNoise] == 0) return INFINITY;
    return 10 * std::log10(numbers[kDifferenceSignal] / numbers[kDifferenceNoise]);
  }
  double cosine() const {
    const double lengths = std::sqrt(numbers[kDifferenceSignal] * numbers[kDifferenceOther]);
    if (lengths == 0) return numbers[kDifferenceNoise] == 0 ? 1 : 0;
    return numbers[kDifferenceProduct] / lengths;
  }
};

class Comparison {
 public:
  Comparison(const Env& env, const std::string& first, const std::string& second,
             const CompareOptions& options)
      : second_(second), pass_(env, first, pass_options(options)) {}

  CompareReport run() {
    CompareReport report;
    report.samples = pass_.each([&](const std::vector<Value>& outputs, int64_t) {
      const auto* numbers = outputs[0].GetTensorData<double>();
      sums_.resize(compared_.size());
      for (size_t i = 0; i < sums_.size(); ++i) sums_[i].add(numbers + i * kDifferenceNumbers);
    });
    if (report.samples == 0)
      fail(ErrorCode::kInvalidArgument, "comparison: expected at least one sample, found none");
    for (size_t i = 0; i < compared_.size(); ++i) report.values.push_back(difference(compared_[i], sums_[i]));
    std::stable_sort(report.values.begin(), report.values.end(), is_worse);
    report.told_bytes = pass_.told_bytes();
    report.peak_bytes = pass_.peak_bytes();
    return report;
  }

 private:
  SamplePassOptions pass_options(const CompareOptions& options) {
    SamplePassOptions pass;
    pass.reader = options.samples;
    pass.subject = "comparison";
    pass.progress = options.progress;
    pass.memory_limit_bytes = options.memory_limit_bytes;
    pass.threads = options.threads;
    pass.level = options.level;
    pass.rewrite = [this](Graph& graph) { add_second(graph); };
    pass.drop_pages = [this](std::span<const std::byte> range) { source_.drop(range); };
    const LockstepOptions lockstep = {options.outputs_only, options.each_by_itself};
    pass.rewrite_inferred = [this, lockstep](Graph& graph) {
      compared_ = observe_differences(graph, second_outputs_, lockstep);
      resolve(graph);
    };
    return pass;
  }

  void add_second(Graph& graph) {
    BumpArena& arena = graph.arena();
    Graph& other = *arena.make<Graph>(arena, graph.dims());
    other.custom_ops = graph.custom_ops;
    source_ = ModelSource();
    read_model(second_, other, source_);
    drop_defaulted_inputs(other);
    inline_functions(other);
    for (std::string_view warning : other.warnings) graph.warn(warning);
    second_outputs_ = call_second_model(graph, other);
    inline_functions(graph);
  }

  static ValueDifference difference(const ComparedValue& value, const Sums& sums) {
    ValueDifference d;
    d.name = value.name, d.other = value.other, d.node = value.node, d.op_type = value.op_type;
    d.is_output = value.is_output;
    const auto whole = [&](DifferenceNumber number) {
      return static_cast<int64_t>(sums.numbers[static_cast<size_t>(number)]);
    };
    d.elements = whole(kDifferenceCount);
    d.not_finite = whole(kDifferenceNotFinite);
    d.unlike_shapes = sums.unlike_shapes;
    d.sqnr = sums.sqnr();
    d.cosine = sums.cosine();
    d.largest_distance = sums.numbers[kDifferenceLargest];
    d.rows = whole(kDifferenceRows);
    d.same_top = whole(kDifferenceSameTop);
    return d;
  }

  // What cannot be compared at all comes before what is only far off.
  static bool is_worse(const ValueDifference& a, const ValueDifference& b) {
    const auto broken = [](const ValueDifference& d) { return d.not_finite + d.unlike_shapes > 0; };
    if (broken(a) != broken(b)) return broken(a);
    return a.sqnr < b.sqnr;
  }

  std::string second_;
  ModelSource source_;  // before the session that reads from it
  std::vector<std::string> second_outputs_;
  std::vector<ComparedValue> compared_;
  std::vector<Sums> sums_;
  SamplePass pass_;
};

}  // namespace

CompareReport Compare(const Env& env, const std::string& first, const std::string& second,
                      const CompareOptions& options) {
  expect_onnx_file(first);
  expect_onnx_file(second);
  if (options.samples == nullptr)
    fail(ErrorCode::kInvalidArgument, "comparison: expected samples, found none");
  return Comparison(env, first, second, options).run();
}

}  // namespace plimsoll
