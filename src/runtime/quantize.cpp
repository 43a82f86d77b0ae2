#include "plimsoll/quantize.h"

#include <sys/stat.h>

#include <algorithm>

#include "onnx/writer.h"
#include "ops/registry.h"
#include "prepare/lower.h"
#include "prepare/prepared_model.h"
#include "quantize/quantize_model.h"
#include "runtime/calibrate.h"
#include "runtime/describe.h"
#include "runtime/env_impl.h"
#include "runtime/hessians.h"
#include "runtime/mixed_precision.h"
#include "runtime/save.h"

namespace plimsoll {
namespace {

NodeFilter filter_of(const QuantizeOptions& options) {
  NodeFilter filter;
  filter.op_types = {options.op_types.begin(), options.op_types.end()};
  filter.only_nodes = {options.nodes.begin(), options.nodes.end()};
  filter.excluded_nodes = {options.excluded_nodes.begin(), options.excluded_nodes.end()};
  return filter;
}

DynamicOptions dynamic_options(const QuantizeOptions& options) {
  DynamicOptions d;
  d.filter = filter_of(options);
  d.weight_type = options.weight_type;
  d.weight_symmetric = options.weight_symmetric;
  d.activation_symmetric = options.activation_symmetric;
  d.per_channel = options.per_channel;
  d.reduce_range = options.reduce_range;
  d.constant_weights_only = options.constant_weights_only.value_or(true);
  d.force_all = options.force_all;
  d.bodies = options.bodies;
  d.least_range = options.minimum_real_range;
  return d;
}

NBitsOptions nbits_options(const QuantizeOptions& options) {
  NBitsOptions n;
  n.filter = filter_of(options);
  n.bits = options.bits;
  n.block_size = options.block_size;
  n.symmetric = options.symmetric;
  n.accuracy_level = options.accuracy_level;
  n.hqq = options.hqq;
  n.gptq = options.gptq;
  n.qdq = options.format == QuantizeFormat::kQDQ;
  return n;
}

HalfOptions half_options(const QuantizeOptions& options) {
  HalfOptions h;
  h.filter = filter_of(options);
  h.type = options.mode == QuantizeMode::kFloat16 ? ElementType::kFloat16 : ElementType::kBFloat16;
  h.keep_io_types = options.keep_io_types;
  return h;
}

StaticOptions static_options(const QuantizeOptions& options, const Graph& graph) {
  StaticOptions s;
  s.filter = filter_of(options);
  s.weight_type = options.weight_type;
  s.activation_type = options.activation_type;
  s.per_channel = options.per_channel;
  s.reduce_range = options.reduce_range;
  s.weight_symmetric = options.weight_symmetric;
  s.activation_symmetric = options.activation_symmetric;
  s.activation_restricted = options.activation_restricted;
  s.force_all = options.force_all;
  s.constant_weights_only = options.constant_weights_only.value_or(false);
  s.least_range = options.minimum_real_range;
  s.quantize_bias = options.quantize_bias;
  s.pair_for_weights = options.qdq_pair_for_weights;
  s.dedicated_pairs = options.dedicated_qdq_pairs;
  s.keep_activations = options.keep_removable_activations;
  s.microsoft_domain = options.microsoft_qdq;
  s.adjust_weights_for_bias = options.adjust_weights_for_bias;
  s.block_size = options.weight_block_size;
  s.output_excluded = {options.output_excluded_op_types.begin(), options.output_excluded_op_types.end()};
  s.channel_axes = {options.per_channel_axes.begin(), options.per_channel_axes.end()};
  settle_static_options(graph, options.format == QuantizeFormat::kQDQ, s);
  return s;
}

int64_t file_bytes(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

// The model as its file has it, with types and shapes: what the rewrites work on.
class OpenedModel {
 public:
  OpenedModel(const std::string& path, Budget& budget) : model_(path, PrepareOptions{}, budget) {
    Graph& graph = model_.graph();
    drop_defaulted_inputs(graph);
    inline_functions(graph);
    adopt_constants(graph);
    for (const Edge* edge : graph.outputs) declared_.push_back(edge->facts.type);
    resolve(graph);
    infer_graph(graph);
  }
  Graph& graph() { return model_.graph(); }
  void drop(std::span<const std::byte> range) const { model_.drop_pages(range); }
  // ONNX wants a shape of every output: where inference does not know the rank, what the file said.
  void restore_output_shapes() {
    for (size_t i = 0; i < declared_.size(); ++i) {
      TypeInfo& type = graph().outputs[i]->facts.type;
      if (!declared_[i].ranked || type.ranked) continue;
      const ElementType element = type.type;
      type = declared_[i];
      if (element != ElementType::kUndefined) type.type = element;
    }
  }
  int64_t file_bytes() const { return model_.file_bytes(); }

 private:
  PreparedModel model_;
  std::vector<TypeInfo> declared_;
};

// What calibration is to look at.
std::vector<std::string> values_to_calibrate(const Graph& graph, const QuantizeOptions& options) {
  refuse_quantized(graph);
  const StaticOptions complete = static_options(options, graph);
  complete.filter.check(graph);
  return values_to_calibrate(graph, complete);
}

constexpr int64_t kSumsRoom = int64_t{256} << 20;  // of GPTQ, where no limit says less

class Quantizing {
 public:
  Quantizing(const Env& env, const std::string& input, const std::string& output,
             const QuantizeOptions& options, Budget& budget, int64_t sums_room = kSumsRoom)
      : env_(env),
        input_(input),
        options_(options),
        budget_(budget),
        sums_room_(sums_room),
        output_(output),
        model_(input, budget),
        spill_(std::in_place, output),
        reading_(budget, Account::kSession, WeightReader::kPiece * 4),
        reader_([this](std::span<const std::byte> range) { model_.drop(range); }) {}
  // A plan: takes of the budget what the work takes, reads no weight and writes nothing.
  Quantizing(const Env& env, const std::string& input, const QuantizeOptions& options, Budget& budget,
             int64_t sums_room)
      : env_(env),
        input_(input),
        options_(options),
        budget_(budget),
        sums_room_(sums_room),
        model_(input, budget),
        spill_(std::in_place),
        reading_(budget, Account::kSession, WeightReader::kPiece * 4),
        reader_({}, true) {}

  // The statistics are for static quantization alone.
  void rewrite(Statistics statistics = {}) {
    QuantizeContext context = {model_.graph(), *spill_, reader_, outcome_, {}};
    if (options_.progress && !reader_.plans())
      context.progress = [this](int64_t done, int64_t all) { options_.progress("nodes", done, all); };
    switch (options_.mode) {
      case QuantizeMode::kDynamic:
        return quantize_dynamic(context, dynamic_options(options_));
      case QuantizeMode::kNBits:
        return rewrite_nbits(context);
      case QuantizeMode::kFloat16:
      case QuantizeMode::kBFloat16:
        return convert_to_half(context, half_options(options_));
      case QuantizeMode::kStatic:
        return quantize_static(context, std::move(statistics));
    }
  }

  void write(QuantizeReport& report) {
    report.input_bytes = model_.file_bytes();
    model_.restore_output_shapes();
    write_model(model_.graph(), output_);
    report.output_bytes = file_bytes(output_);
    if (spill_->bytes() >= WriteOptions().max_file_bytes)
      report.output_bytes += file_bytes(output_ + ".data");
    report.peak_bytes = std::max(report.peak_bytes, budget_.report().peak_bytes);
    for (const auto& [from, to] :
         {std::pair(&outcome_.quantized, &report.quantized), std::pair(&outcome_.left, &report.left)}) {
      for (const QuantizedNode& node : *from) to->push_back({node.name, node.op_type, node.became});
    }
    report.warnings = describe_warnings(model_.graph());
    if (!hessians_) return;
    report.samples = hessians_->samples();
    report.calibration_told_bytes = hessians_->told_bytes();
    report.calibration_peak_bytes = hessians_->peak_bytes();
    report.peak_bytes = std::max(report.peak_bytes, hessians_->peak_bytes());
  }

 private:
  void rewrite_nbits(QuantizeContext& context) {
    NBitsOptions options = nbits_options(options_);
    if (options_.gptq) {
      refuse_quantized(model_.graph());
      std::vector<Hessians::Input> inputs;
      for (const auto& [name, k] : nbits_inputs(model_.graph(), options)) inputs.push_back({name, k});
      hessians_.emplace(env_, input_, options_, std::move(inputs), budget_, sums_room_, reader_.plans());
      options.factor = [this](std::string_view name) { return hessians_->factor(name); };
    }
    quantize_nbits(context, options);
  }

  void quantize_static(QuantizeContext& context, Statistics statistics) {
    const StaticOptions options = static_options(options_, model_.graph());
    for (const auto& [name, range] : options_.ranges) statistics[name].range = {range.lowest, range.highest};
    if (options_.format == QuantizeFormat::kQDQ) return quantize_qdq(context, options, std::move(statistics));
    quantize_qoperator(context, options, std::move(statistics));
  }

  const Env& env_;
  std::string input_;
  const QuantizeOptions& options_;
  Budget& budget_;
  int64_t sums_room_;  // see Hessians
  std::optional<Hessians> hessians_;
  std::string output_;
  OpenedModel model_;
  std::optional<SpillFile> spill_;
  Charge reading_;
  WeightReader reader_;
  QuantizeOutcome outcome_;
};

// What rewriting takes. Statistics of what calibration will see have numbers that no operator is without:
// where they are does not change what is written.
int64_t planned_bytes(const Env& env, const std::string& input, const QuantizeOptions& options,
                      const std::vector<std::string>& names = {}, int64_t sums_room = kSumsRoom) {
  Statistics statistics;
  for (const std::string& name : names) statistics[name].range = {0, 1};
  Budget budget("planning", 0, &env.impl()->budget);
  Quantizing(env, input, options, budget, sums_room).rewrite(std::move(statistics));
  return budget.report().peak_bytes;
}

void refuse_limit(const std::string& input, int64_t limit_bytes, int64_t needed_bytes) {
  fail(ErrorCode::kBudgetExceeded,
       "quantizing '{}': a limit of {} bytes is too small; the smallest that would do is {}", input,
       limit_bytes, needed_bytes);
}

bool is_crossed(const QuantizeOptions& options, int64_t bytes) {
  return options.memory_limit_bytes > 0 && bytes > options.memory_limit_bytes;
}

// Of the values that static quantization wants ranges of, those that the caller does not give.
std::vector<std::string> unknown_values(const Env& env, const std::string& model,
                                        const QuantizeOptions& options) {
  Budget budget("planning", 0, &env.impl()->budget);
  std::vector<std::string> names = values_to_calibrate(OpenedModel(model, budget).graph(), options);
  const auto is_known = [&](const std::string& name) { return options.ranges.count(name) > 0; };
  if (std::all_of(names.begin(), names.end(), is_known)) names.clear();
  return names;
}

// Neither holds anything while the other works.
std::pair<Calibrated, QuantizeReport> find_ranges(const Env& env, const std::string& model,
                                                  const std::vector<std::string>& names,
                                                  const QuantizeOptions& options) {
  Calibrated found;
  if (!names.empty()) found = calibrate(env, model, names, options);
  QuantizeReport report;
  report.samples = found.samples;
  report.calibration_told_bytes = found.told_bytes;
  report.calibration_peak_bytes = report.peak_bytes = found.peak_bytes;
  report.ranges = options.ranges;
  for (const auto& [name, value] : found.statistics) {
    if (!value.has_infinities) report.ranges.emplace(name, TensorRange{value.range.low, value.range.high});
  }
  return {std::move(found), std::move(report)};
}

QuantizeReport quantize_statically(const Env& env, const std::string& input, const std::string& output,
                                   const QuantizeOptions& options) {
  const std::vector<std::string> names = unknown_values(env, input, options);
  const int64_t told = planned_bytes(env, input, options, names);
  if (is_crossed(options, told)) {
    const bool samples = !names.empty() && options.calibration != nullptr;
    refuse_limit(input, options.memory_limit_bytes,
                 std::max(told, samples ? smallest_calibration_bytes(env, input, names, options) : 0));
  }
  auto [found, report] = find_ranges(env, input, names, options);
  Budget budget("quantizing", options.memory_limit_bytes, &env.impl()->budget);
  Quantizing work(env, input, output, options, budget);
  work.rewrite(std::move(found.statistics));
  work.write(report);
  report.told_bytes = std::max(told, report.calibration_told_bytes);
  return report;
}

QuantizeReport quantize_planned(const Env& env, const std::string& input, const std::string& output,
                                const QuantizeOptions& options, int64_t told, int64_t sums_room = kSumsRoom) {
  if (is_crossed(options, told)) refuse_limit(input, options.memory_limit_bytes, told);
  Budget budget("quantizing", options.memory_limit_bytes, &env.impl()->budget);
  Quantizing work(env, input, output, options, budget, sums_room);
  work.rewrite();
  QuantizeReport report;
  work.write(report);
  report.told_bytes = told;
  return report;
}

// As many sums at a time as the limit has room for; where that is not held to the end, one at a time.
QuantizeReport quantize_by_gptq(const Env& env, const std::string& input, const std::string& output,
                                QuantizeOptions options) {
  if (options.calibration == nullptr) fail(ErrorCode::kInvalidArgument, "GPTQ: expected samples, found none");
  FirstSampleKept samples(*options.calibration);
  options.calibration = &samples;
  const auto planned = [&](int64_t limit, int64_t sums_room) {
    QuantizeOptions limited = options;
    limited.memory_limit_bytes = limit;
    const int64_t bytes = planned_bytes(env, input, limited, {}, sums_room);
    samples.Rewind();
    return bytes;
  };
  const int64_t limit = options.memory_limit_bytes;
  int64_t sums_room = kSumsRoom, told = planned(limit, sums_room);
  if (is_crossed(options, told)) told = planned(limit, sums_room = 0);
  if (is_crossed(options, told)) told = planned(1, 0);  // the smallest
  return quantize_planned(env, input, output, options, told, sums_room);
}

QuantizeReport quantize_once(const Env& env, const std::string& input, const std::string& output,
                             const QuantizeOptions& options) {
  expect_onnx_file(input);
  if (options.mode == QuantizeMode::kStatic) return quantize_statically(env, input, output, options);
  if (options.mode == QuantizeMode::kNBits && options.gptq)
    return quantize_by_gptq(env, input, output, options);
  return quantize_planned(env, input, output, options, planned_bytes(env, input, options));
}

}  // namespace

QuantizeReport Quantize(const Env& env, const std::string& input, const std::string& output,
                        const QuantizeOptions& options) {
  if (!options.max_loss && !options.target_bytes) return quantize_once(env, input, output, options);
  return quantize_to_target(env, input, output, options,
                            [&](const std::string& to, const QuantizeOptions& once) {
                              return quantize_once(env, input, to, once);
                            });
}

QuantizeReport Calibrate(const Env& env, const std::string& model, const QuantizeOptions& options) {
  return find_ranges(env, model, unknown_values(env, model, options), options).second;
}

}  // namespace plimsoll
