#include <fmt/format.h>
#include <plimsoll/model.h>
#include <plimsoll/quantize.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "command.h"
#include "files.h"
#include "frontier_picture.h"
#include "interrupt.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "samples.h"

namespace plimsoll::cli {
namespace {

struct QuantizeArguments {
  std::string model, output, mode, format = "qdq", weight_type = "int8", activation_type = "uint8", limit;
  std::string calibration, method = "minmax";
  double percentile = 99.999;
  int threads = 0;
  std::vector<std::string> exclude, nodes, op_types;
  int bits = 4, block_size = 128, accuracy_level = 0;
  bool per_channel = false, reduce_range = false, activation_symmetric = false, symmetric = false,
       hqq = false, gptq = false, keep_io_types = false;
  std::string max_loss, target_bytes, metric = "sqnr", picture;
  bool json = false;
};

QuantizeMode mode_of(const std::string& name) {
  static const std::map<std::string, QuantizeMode> modes = {{"dynamic", QuantizeMode::kDynamic},
                                                            {"static", QuantizeMode::kStatic},
                                                            {"nbits", QuantizeMode::kNBits},
                                                            {"fp16", QuantizeMode::kFloat16},
                                                            {"bf16", QuantizeMode::kBFloat16}};
  return modes.at(name);
}

CalibrationMethod method_of(const std::string& name) {
  static const std::map<std::string, CalibrationMethod> methods = {
      {"minmax", CalibrationMethod::kMinMax},
      {"entropy", CalibrationMethod::kEntropy},
      {"percentile", CalibrationMethod::kPercentile},
      {"distribution", CalibrationMethod::kDistribution}};
  return methods.at(name);
}

ElementType integer_type(const std::string& name) {
  static const std::map<std::string, ElementType> types = {
      {"int8", ElementType::kInt8},     {"uint8", ElementType::kUint8}, {"int16", ElementType::kInt16},
      {"uint16", ElementType::kUint16}, {"int4", ElementType::kInt4},   {"uint4", ElementType::kUint4}};
  return types.at(name);
}

// "0.5%" or "0.005"; throws UsageError.
double parse_share(const std::string& text) {
  double value = -1;
  size_t used = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string rest = text.substr(used);
  if (used == 0 || !(value >= 0) || (rest != "" && rest != "%"))
    throw UsageError(fmt::format("--max-loss: expected a share such as 0.5% or 0.005, found '{}'", text));
  return rest == "%" ? value / 100 : value;
}

QuantizeOptions quantize_options(const QuantizeArguments& given) {
  QuantizeOptions options;
  options.mode = mode_of(given.mode);
  if (!given.limit.empty()) options.memory_limit_bytes = parse_bytes(given.limit);
  options.excluded_nodes = given.exclude;
  options.nodes = given.nodes;
  options.op_types = given.op_types;
  options.weight_type = integer_type(given.weight_type);
  options.activation_type = integer_type(given.activation_type);
  options.method = method_of(given.method);
  options.percentile = given.percentile;
  options.threads = given.threads;
  options.per_channel = given.per_channel;
  options.reduce_range = given.reduce_range;
  options.activation_symmetric = given.activation_symmetric;
  options.bits = given.bits;
  options.block_size = given.block_size;
  options.symmetric = given.symmetric;
  options.hqq = given.hqq;
  options.gptq = given.gptq;
  if (!given.max_loss.empty()) options.max_loss = parse_share(given.max_loss);
  if (!given.target_bytes.empty()) options.target_bytes = parse_bytes(given.target_bytes, "--target-bytes");
  options.metric = given.metric == "top1" ? LossMetric::kTopOne : LossMetric::kNoise;
  options.accuracy_level = given.accuracy_level;
  options.keep_io_types = given.keep_io_types;
  const bool is_qdq = given.format == "qdq" && options.mode != QuantizeMode::kNBits;
  options.format = is_qdq ? QuantizeFormat::kQDQ : QuantizeFormat::kQOperator;
  if (options.mode == QuantizeMode::kNBits && options.op_types.empty())
    options.op_types = {"MatMul", "Gather"};
  return options;
}

// How many nodes became what.
std::map<std::string, int64_t> counted(const std::vector<QuantizeReport::Entry>& entries) {
  std::map<std::string, int64_t> counts;
  for (const QuantizeReport::Entry& entry : entries)
    ++counts[fmt::format("{} -> {}", entry.op_type, entry.became)];
  return counts;
}

Json entries_json(const std::vector<QuantizeReport::Entry>& entries) {
  Json list = Json::array();
  for (const QuantizeReport::Entry& entry : entries)
    list.push_back({{"node", entry.node}, {"op_type", entry.op_type}, {"became", entry.became}});
  return list;
}

Json ranges_json(const std::map<std::string, TensorRange>& ranges) {
  Json all = Json::object();
  for (const auto& [name, range] : ranges)
    all[name] = {{"lowest", double{range.lowest}}, {"highest", double{range.highest}}};
  return all;
}

Json layers_json(const std::vector<QuantizeReport::Layer>& layers) {
  Json list = Json::array();
  for (const QuantizeReport::Layer& layer : layers) {
    Json line = {{"node", layer.node}, {"op_type", layer.op_type}, {"stays_float", layer.stays_float}};
    line["sqnr"] = std::isfinite(layer.sqnr) ? Json(layer.sqnr) : Json();
    line["cosine"] = layer.cosine;
    list.push_back(line);
  }
  return list;
}

Json frontier_json(const std::vector<QuantizeReport::Candidate>& frontier) {
  Json list = Json::array();
  for (const QuantizeReport::Candidate& c : frontier)
    list.push_back(
        {{"float_layers", c.float_layers}, {"bytes", c.bytes}, {"loss", c.loss}, {"chosen", c.chosen}});
  return list;
}

std::string frontier_text(const QuantizeReport& report) {
  std::string text = "layers that lose the most (each by itself):\n";
  size_t shown = 0;
  for (const QuantizeReport::Layer& layer : report.layers) {
    if (shown++ == 10) break;
    text += fmt::format("  {:>6.1f} dB {:.6f} {} {}{}\n", layer.sqnr, layer.cosine, layer.op_type, layer.node,
                        layer.stays_float ? "  stays float" : "");
  }
  text += "bytes against loss:\n";
  for (const QuantizeReport::Candidate& c : report.frontier)
    text += fmt::format("  {:>14} bytes, loss {:.4f}%, {} of {} layers in floats{}\n", grouped(c.bytes),
                        100 * c.loss, c.float_layers, report.layers.size(), c.chosen ? "  <- written" : "");
  return text;
}

void print_report(const QuantizeArguments& given, const QuantizeReport& report) {
  print_warnings(report.warnings);
  const double ratio = static_cast<double>(report.output_bytes) / static_cast<double>(report.input_bytes);
  std::string text = fmt::format("{}: {} bytes, {:.3f} of {}\n", given.output, grouped(report.output_bytes),
                                 ratio, grouped(report.input_bytes));
  for (const auto& [what, count] : counted(report.quantized))
    text += fmt::format("  {:>5} {}\n", count, what);
  for (const auto& [what, count] : counted(report.left))
    text += fmt::format("  {:>5} left: {}\n", count, what);
  if (report.samples > 0)
    text += fmt::format("calibration: {} samples, {} values; told {}, took {}\n", report.samples,
                        report.ranges.size(), human_bytes(report.calibration_told_bytes),
                        human_bytes(report.calibration_peak_bytes));
  if (!report.frontier.empty()) text += frontier_text(report);
  text += fmt::format("memory: told {}, took {}\n", human_bytes(report.told_bytes),
                      human_bytes(report.peak_bytes));
  print(text);
}

int quantize(const QuantizeArguments& given) {
  QuantizeOptions options = quantize_options(given);
  const InterruptGuard guard;
  Progress progress(!given.json);
  options.progress = [&](const std::string& stage, int64_t done, int64_t all) {
    check_interrupted();
    progress.tell(stage, done, all);
  };
  const Env env;
  std::unique_ptr<SampleFolder> samples;
  const bool is_mixed = options.max_loss || options.target_bytes;
  if (is_mixed && (options.mode == QuantizeMode::kFloat16 || options.mode == QuantizeMode::kBFloat16))
    throw UsageError("--max-loss and --target-bytes are for dynamic, static and nbits");
  if (!given.picture.empty() && !is_mixed) throw UsageError("--picture needs --max-loss or --target-bytes");
  check_outputs(given.model, {{"--picture", given.picture}});
  if (!given.picture.empty()) check_can_write(given.picture);
  const bool needs_samples = options.mode == QuantizeMode::kStatic || is_mixed || options.gptq;
  if (needs_samples) {
    if (given.calibration.empty())
      throw UsageError("--mode static, --gptq, --max-loss and --target-bytes need --calibration DIR");
    samples = std::make_unique<SampleFolder>(given.calibration, Model(env, given.model).GetInfo().inputs);
    options.calibration = samples.get();
  }
  const QuantizeReport report = Quantize(env, given.model, given.output, options);
  progress.clear();
  if (!given.picture.empty()) {
    NewFiles files;
    const std::string picture = frontier_picture(report, options.max_loss);
    files.add(given.picture, {picture});
    files.commit();
  }
  if (given.json) {
    JsonOutput().finish({{"input_bytes", report.input_bytes},
                         {"output_bytes", report.output_bytes},
                         {"told_bytes", report.told_bytes},
                         {"peak_bytes", report.peak_bytes},
                         {"samples", report.samples},
                         {"calibration_told_bytes", report.calibration_told_bytes},
                         {"calibration_peak_bytes", report.calibration_peak_bytes},
                         {"ranges", ranges_json(report.ranges)},
                         {"quantized", entries_json(report.quantized)},
                         {"left", entries_json(report.left)},
                         {"layers", layers_json(report.layers)},
                         {"frontier", frontier_json(report.frontier)},
                         {"warnings", report.warnings}});
  } else {
    print_report(given, report);
  }
  return 0;
}

}  // namespace

Command quantize_command(Arguments parent) {
  Arguments arguments =
      parent.add_command("quantize", "Write a smaller model: integers, blocks of bits, 16-bit floats");
  auto given = std::make_shared<QuantizeArguments>();
  arguments.add_option("IN", given->model, "an ONNX file").required();
  arguments.add_option("OUT", given->output, "where the smaller model goes").required();
  arguments.add_option("--mode", given->mode, "dynamic, static, nbits, fp16 or bf16")
      .one_of({"dynamic", "static", "nbits", "fp16", "bf16"})
      .required();
  arguments.add_option("--format", given->format, "of integers: qdq or qoperator")
      .one_of({"qdq", "qoperator"});
  arguments.add_option("--weight-type", given->weight_type, "of integers")
      .one_of({"int8", "uint8", "int16", "uint16", "int4", "uint4"});
  arguments.add_option("--activation-type", given->activation_type, "of integers, static")
      .one_of({"int8", "uint8", "int16", "uint16"});
  arguments.add_option(
      "--calibration", given->calibration,
      "of static, GPTQ and mixed precision: a folder with a folder per sample, INPUT.npy in each");
  arguments
      .add_option("--method", given->method, "of calibration: minmax, entropy, percentile or distribution")
      .one_of({"minmax", "entropy", "percentile", "distribution"});
  arguments.add_option("--percentile", given->percentile, "of that method: the part that is kept")
      .range(1.0, 100.0);
  arguments.add_option("--threads", given->threads, "of calibration; 0: one per CPU").range(0, 1024);
  arguments.add_flag("--per-channel", given->per_channel, "a scale for every channel of a weight");
  arguments.add_flag("--reduce-range", given->reduce_range, "weights of 7 bits");
  arguments.add_flag("--activation-symmetric", given->activation_symmetric, "activations around 0");
  arguments.add_option("--bits", given->bits, "of nbits: 2, 4 or 8").range(2, 8);
  arguments.add_option("--block-size", given->block_size, "of nbits: how many weights share a scale")
      .range(16, 65536);
  arguments.add_flag("--symmetric", given->symmetric, "of nbits: no zero points");
  arguments.add_flag("--hqq", given->hqq, "of nbits: zero points that are floats and fit better");
  arguments.add_flag("--gptq", given->gptq, "of nbits: rounding that makes up for itself on the samples");
  arguments.add_option("--accuracy-level", given->accuracy_level, "of nbits: written into the model")
      .range(0, 4);
  arguments.add_flag("--keep-io-types", given->keep_io_types,
                     "of fp16 and bf16: inputs and outputs stay floats");
  arguments.add_option("--exclude", given->exclude, "a node that stays as it is; may come often")
      .one_value_each();
  arguments.add_option("--node", given->nodes, "a node to quantize; all if none is named").one_value_each();
  arguments
      .add_option("--op-type", given->op_types, "an operator to quantize; all that can be if none is named")
      .one_value_each();
  arguments
      .add_option("--max-loss", given->max_loss,
                  "mixed precision: the worst layers stay floats until no more is lost, "
                  "such as 0.5%")
      .check(check_not_empty);
  arguments
      .add_option("--target-bytes", given->target_bytes,
                  "mixed precision: the worst layers stay floats while the file is no larger")
      .check(check_not_empty);
  arguments
      .add_option("--metric", given->metric,
                  "what --max-loss counts: sqnr, the noise over the signal, or top1, rows with another "
                  "largest element")
      .one_of({"sqnr", "top1"});
  arguments.add_option("--picture", given->picture, "an SVG file for bytes against loss")
      .check(check_not_empty);
  arguments.add_option("--limit", given->limit, "the most memory that this may take, such as 512MiB")
      .check(check_not_empty);
  add_json_option(arguments, given->json);
  arguments.footer("Example: plimsoll quantize model.onnx small.onnx --mode dynamic --per-channel");
  return {arguments, [given] { return quantize(*given); }};
}

}  // namespace plimsoll::cli
