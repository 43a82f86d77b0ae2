#include "runtime/mixed_precision.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fail.h"

namespace plimsoll {
namespace {

// Where candidates are written, beside the output; gone when this is.
class CandidateFile {
 public:
  explicit CandidateFile(const std::string& output)
      : path_(fmt::format("{}.{}.candidate", output, ::getpid())) {}
  CandidateFile(const CandidateFile&) = delete;
  ~CandidateFile() {
    ::unlink(path_.c_str());
    ::unlink((path_ + ".data").c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Search {
 public:
  Search(const Env& env, const std::string& input, const std::string& output, const QuantizeOptions& options,
         const QuantizeOnce& quantize)
      : env_(env), input_(input), output_(output), options_(options), quantize_(quantize), file_(output) {
    if (options_.calibration == nullptr)
      fail(ErrorCode::kInvalidArgument,
           "mixed precision: expected samples to measure the loss on, found none");
  }

  QuantizeReport run() {
    const QuantizeReport all = write(0);
    options_.ranges = all.ranges;  // of static quantization: found once
    samples_ = all.samples, calibration_told_ = all.calibration_told_bytes,
    calibration_peak_ = all.calibration_peak_bytes;
    rank_layers(all);
    measure(0, all.output_bytes);
    const int64_t most = static_cast<int64_t>(layers_.size());
    const int64_t chosen = options_.max_loss ? fewest_floats(most) : most_floats(most);
    check_bytes(chosen);
    return finish(chosen);
  }

 private:
  void rewind() const {
    if (!options_.calibration->Rewind())
      fail(ErrorCode::kInvalidArgument,
           "mixed precision goes through the samples many times: expected a reader that can begin anew");
  }

  QuantizeReport write(int64_t floats) {
    if (floats > 0 || !options_.ranges.empty()) rewind();
    QuantizeReport report = quantize_(file_.path(), with_floats(floats));
    account(report);
    return report;
  }

  // Candidates and comparisons come one after the other: the largest of them is what all of it takes.
  template <typename Report>
  void account(const Report& report) {
    told_ = std::max(told_, report.told_bytes);
    peak_ = std::max(peak_, report.peak_bytes);
  }

  QuantizeOptions with_floats(int64_t floats) const {
    QuantizeOptions once = options_;
    for (int64_t i = 0; i < floats; ++i) once.excluded_nodes.push_back(layers_[static_cast<size_t>(i)].node);
    return once;
  }

  CompareOptions compare_options() const {
    CompareOptions compare;
    compare.samples = options_.calibration;
    compare.memory_limit_bytes = options_.memory_limit_bytes;
    compare.threads = options_.threads;
    compare.progress = options_.progress;
    return compare;
  }

  CompareReport compare(const CompareOptions& how) {
    rewind();
    CompareReport report = Compare(env_, input_, file_.path(), how);
    account(report);
    return report;
  }

  // What each layer loses for itself, from one run of all in lockstep.
  void rank_layers(const QuantizeReport& all) {
    CompareOptions how = compare_options();
    how.each_by_itself = true;
    std::map<std::string, ValueDifference> by_node;
    for (ValueDifference& d : compare(how).values) by_node.emplace(d.node, std::move(d));
    std::set<std::string> seen;
    for (const QuantizeReport::Entry& entry : all.quantized) {
      const std::string node = original_name(entry, by_node);
      if (!seen.insert(node).second) continue;
      const auto found = by_node.find(node);
      // What nothing is known of comes last.
      QuantizeReport::Layer layer = {node, entry.op_type, INFINITY, 1, false};
      if (found != by_node.end()) layer.sqnr = found->second.sqnr, layer.cosine = found->second.cosine;
      layers_.push_back(layer);
    }
    std::stable_sort(layers_.begin(), layers_.end(),
                     [](const auto& a, const auto& b) { return a.sqnr < b.sqnr; });
  }

  // A Gemm that became a product and a sum is told by the product's name.
  static std::string original_name(const QuantizeReport::Entry& entry,
                                   const std::map<std::string, ValueDifference>& by_node) {
    constexpr std::string_view kSuffix = "_MatMul";
    const std::string& name = entry.node;
    if (by_node.count(name) > 0 || name.size() <= kSuffix.size()) return name;
    const std::string before = name.substr(0, name.size() - kSuffix.size());
    return before + std::string(kSuffix) == name && by_node.count(before) > 0 ? before : name;
  }

  double loss_of_file() {
    if (options_.loss) return options_.loss(file_.path());
    CompareOptions how = compare_options();
    how.outputs_only = true;
    double worst = 0;
    for (const ValueDifference& d : compare(how).values) {
      if (d.not_finite + d.unlike_shapes > 0) return INFINITY;
      const double rows = static_cast<double>(std::max<int64_t>(d.rows, 1));
      const double elsewhere = static_cast<double>(d.rows - d.same_top) / rows;
      worst =
          std::max(worst, options_.metric == LossMetric::kTopOne ? elsewhere : std::pow(10.0, -d.sqnr / 20));
    }
    return worst;
  }

  const QuantizeReport::Candidate& measure(int64_t floats, int64_t bytes) {
    if (options_.progress) options_.progress("candidate", static_cast<int64_t>(tried_.size()), 0);
    QuantizeReport::Candidate candidate;
    candidate.float_layers = floats;
    candidate.bytes = bytes;
    candidate.loss = loss_of_file();
    return tried_[floats] = candidate;
  }

  const QuantizeReport::Candidate& candidate(int64_t floats) {
    const auto known = tried_.find(floats);
    if (known != tried_.end()) return known->second;
    return measure(floats, write(floats).output_bytes);
  }

  // Steps that double, then halves: a loss that falls is found in few candidates.
  int64_t fewest_floats(int64_t most) {
    const auto holds = [&](int64_t floats) {
      return floats == most || candidate(floats).loss <= *options_.max_loss;
    };
    int64_t low = -1, high = 0;
    for (int64_t step = 1; !holds(high); step *= 2) low = high, high = std::min(high + step, most);
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (holds(middle) ? high : low) = middle;
    }
    if (most > 0) candidate(high);
    return high;
  }

  // Of a target of bytes alone: as many as fit.
  int64_t most_floats(int64_t most) {
    if (candidate(0).bytes > *options_.target_bytes) return 0;
    int64_t low = 0, high = most + 1;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (candidate(middle).bytes <= *options_.target_bytes ? low : high) = middle;
    }
    return low;
  }

  void check_bytes(int64_t floats) {
    if (!options_.target_bytes || candidate(floats).bytes <= *options_.target_bytes) return;
    fail(ErrorCode::kInvalidArgument,
         "mixed precision: expected a file of {} bytes or less{}, found that the smallest has {}",
         *options_.target_bytes,
         options_.max_loss ? fmt::format(" that loses no more than {}", *options_.max_loss) : "",
         candidate(floats).bytes);
  }

  QuantizeReport finish(int64_t chosen) {
    rewind();
    QuantizeReport report = quantize_(output_, with_floats(chosen));
    for (int64_t i = 0; i < chosen; ++i) layers_[static_cast<size_t>(i)].stays_float = true;
    report.layers = std::move(layers_);
    for (auto& [floats, tried] : tried_) {
      tried.chosen = floats == chosen;
      report.frontier.push_back(tried);
    }
    account(report);
    report.told_bytes = told_, report.peak_bytes = peak_;
    report.samples = samples_;
    report.calibration_told_bytes = calibration_told_;
    report.calibration_peak_bytes = calibration_peak_;
    return report;
  }

  const Env& env_;
  std::string input_, output_;
  QuantizeOptions options_;
  QuantizeOnce quantize_;
  CandidateFile file_;
  std::vector<QuantizeReport::Layer> layers_;
  std::map<int64_t, QuantizeReport::Candidate> tried_;
  int64_t told_ = 0, peak_ = 0, samples_ = 0, calibration_told_ = 0, calibration_peak_ = 0;
};

}  // namespace

QuantizeReport quantize_to_target(const Env& env, const std::string& input, const std::string& output,
                                  const QuantizeOptions& options, const QuantizeOnce& quantize) {
  return Search(env, input, output, options, quantize).run();
}

}  // namespace plimsoll
