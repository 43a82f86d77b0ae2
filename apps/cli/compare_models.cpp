#include <fmt/format.h>
#include <plimsoll/model.h>
#include <plimsoll/quantize.h>

#include <cmath>
#include <memory>

#include "command.h"
#include "interrupt.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "samples.h"

namespace plimsoll::cli {
namespace {

struct CompareArguments {
  std::string first, second, data, limit, level = "none";
  int threads = 0, top = 20;
  bool outputs_only = false, each_by_itself = false, json = false;
};

GraphOptimizationLevel level_of(const std::string& name) {
  EngineOptions engine;
  engine.level = name;
  return engine.session_options().optimization_level;
}

Json difference_json(const ValueDifference& d) {
  Json line = {{"name", d.name},
               {"other", d.other},
               {"node", d.node},
               {"op_type", d.op_type},
               {"is_output", d.is_output},
               {"elements", d.elements},
               {"not_finite", d.not_finite},
               {"unlike_shapes", d.unlike_shapes}};
  line["sqnr"] = std::isfinite(d.sqnr) ? Json(d.sqnr) : Json();  // null: no difference at all
  line["cosine"] = d.cosine;
  line["largest_distance"] = d.largest_distance;
  line["rows"] = d.rows;
  line["same_top"] = d.same_top;
  return line;
}

std::string difference_line(const ValueDifference& d) {
  const std::string trouble = d.unlike_shapes > 0 ? "  shapes differ"
                              : d.not_finite > 0  ? fmt::format("  {} not finite", grouped(d.not_finite))
                                                  : "";
  const std::string ratio = std::isfinite(d.sqnr) ? fmt::format("{:.1f}", d.sqnr) : "same";
  return fmt::format(
      "{:>8} {:>10.6f} {:>11.4g} {:>7.2f}%  {}{}{}{}\n", ratio, d.cosine, d.largest_distance,
      d.rows > 0 ? 100.0 * static_cast<double>(d.same_top) / static_cast<double>(d.rows) : 100.0, d.op_type,
      d.is_output ? " (output) " : " ", d.name, trouble);
}

void print_report(const CompareArguments& given, const CompareReport& report) {
  std::string text =
      fmt::format("{} values, {} samples; worst first\n", report.values.size(), report.samples);
  text += fmt::format("{:>8} {:>10} {:>11} {:>8}  {}\n", "SQNR dB", "cosine", "max abs", "top 1", "value");
  size_t shown = 0;
  for (const ValueDifference& d : report.values) {
    if (shown++ < static_cast<size_t>(given.top) || d.is_output) text += difference_line(d);
  }
  text += fmt::format("memory: told {}, took {}\n", human_bytes(report.told_bytes),
                      human_bytes(report.peak_bytes));
  print(text);
}

int compare(const CompareArguments& given) {
  CompareOptions options;
  if (!given.limit.empty()) options.memory_limit_bytes = parse_bytes(given.limit);
  options.threads = given.threads;
  options.outputs_only = given.outputs_only;
  options.each_by_itself = given.each_by_itself;
  options.level = level_of(given.level);
  const InterruptGuard guard;
  Progress progress(!given.json);
  options.progress = [&](const std::string& stage, int64_t done, int64_t all) {
    check_interrupted();
    progress.tell(stage, done, all);
  };
  const Env env;
  SampleFolder samples(given.data, Model(env, given.first).GetInfo().inputs);
  options.samples = &samples;
  const CompareReport report = Compare(env, given.first, given.second, options);
  progress.clear();
  if (!given.json) {
    print_report(given, report);
    return 0;
  }
  Json values = Json::array();
  for (const ValueDifference& d : report.values) values.push_back(difference_json(d));
  JsonOutput().finish({{"samples", report.samples},
                       {"told_bytes", report.told_bytes},
                       {"peak_bytes", report.peak_bytes},
                       {"values", values}});
  return 0;
}

}  // namespace

Command compare_command(Arguments parent) {
  Arguments arguments = parent.add_command(
      "compare", "Run two models in lockstep and say where they differ, the worst value first");
  auto given = std::make_shared<CompareArguments>();
  arguments.add_option("A", given->first, "an ONNX file").required();
  arguments.add_option("B", given->second, "another, such as A quantized").required();
  arguments.add_option("--data", given->data, "a folder with a folder per sample, INPUT.npy in each")
      .required()
      .check(check_not_empty);
  arguments.add_option("--limit", given->limit, "the most memory that this may take, such as 512MiB")
      .check(check_not_empty);
  arguments.add_option("--level", given->level, "how both are optimized: none, basic, extended or all")
      .one_of({"none", "basic", "extended", "all"});
  arguments.add_option("--threads", given->threads, "0: one per CPU").range(0, 1024);
  arguments.add_option("--top", given->top, "how many values to show; outputs always are").range(0, 1 << 30);
  arguments.add_flag("--outputs-only", given->outputs_only, "nothing between inputs and outputs");
  arguments.add_flag("--each-by-itself", given->each_by_itself,
                     "give B's nodes A's values: what each loses, not what adds up");
  add_json_option(arguments, given->json);
  arguments.footer("Example: plimsoll compare model.onnx small.onnx --data samples --limit 1GiB");
  return {arguments, [given] { return compare(*given); }};
}

}  // namespace plimsoll::cli
