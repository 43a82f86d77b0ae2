#include <fmt/core.h>
#include <plimsoll/session.h>

#include <memory>

#include "command.h"
#include "inputs.h"
#include "interrupt.h"
#include "npy.h"
#include "options.h"
#include "report.h"
#include "timing.h"

namespace plimsoll::cli {
namespace {

struct RunCommandOptions {
  std::string model, output;
  InputOptions inputs;
  EngineOptions engine;
  std::string trace;
  int repeat = 1;
  bool arena_stats = false, shrink = false;
  bool json = false;
};

std::vector<std::string> names_of(const std::vector<ValueInfo>& infos) {
  std::vector<std::string> names;
  names.reserve(infos.size());
  for (const ValueInfo& info : infos) names.push_back(info.name);
  return names;
}

// A tensor is NAME.npy; a sequence a folder NAME with 0.npy, 1.npy, ...; a map one with keys.npy and
// values.npy; an optional without a value an empty folder.
void write_value(NewFiles& files, const std::string& name, const Value& value) {
  if (value.IsTensor()) return write_npy(files, name + ".npy", value);
  files.add_directory(name);
  if (!value.HasValue()) return;
  for (size_t i = 0; i < value.GetCount(); ++i)
    write_value(files,
                fmt::format("{}/{}", name,
                            !value.IsMap() ? std::to_string(i)
                            : i == 0       ? "keys"
                                           : "values"),
                value.GetValue(i));
}

void write_outputs(const std::string& directory, const std::vector<Value>& outputs) {
  NewFiles files;
  files.add_directory(directory);
  for (size_t i = 0; i < outputs.size(); ++i)
    write_value(files, fmt::format("{}/{}", directory, i), outputs[i]);
  files.commit();
}

struct RunOutcome {
  int64_t predicted_bytes = 0;
  bool depends_on_data = false;
  MemoryReport memory;
  std::vector<double> times_ms;
  Json outputs = Json::array();
  std::vector<std::string> warnings;
  ArenaStats arena;
  std::string trace;
};

// Everything that lives as long as the session is gone when this returns.
RunOutcome execute(const RunCommandOptions& options, const Env& env, JsonOutput& out) {
  const Inputs inputs(options.inputs);
  SessionOptions session_options = options.engine.session_options();
  session_options.random_seed = options.inputs.seed;
  session_options.overridden_initializers = inputs.named();
  if (!options.trace.empty()) session_options.EnableProfiling(options.trace);
  if (!options.output.empty()) NewFiles().add_directory(options.output);  // only tried
  // Shapes are known before the weights are loaded: what cannot fit is refused before any tensor memory is
  // taken.
  Shapes shapes;
  Session session(env, options.model, session_options, [&](const std::vector<ValueInfo>& infos) {
    return shapes = inputs.complete_shapes(infos);
  });
  const std::vector<Value> values = inputs.values(session.GetInputs(), shapes);
  const Plan plan = session.Prepare(shapes);
  RunOutcome outcome;
  outcome.predicted_bytes = plan.peak_bytes;
  outcome.depends_on_data = plan.depends_on_data;
  const std::vector<std::string> names = names_of(session.GetInputs()),
                                 output_names = names_of(session.GetOutputs());
  const RunOptions run_options = RunOptions(interruptible()).SetShrinkArena(options.shrink);
  std::vector<Value> outputs;
  for (int i = 0; i < options.repeat; ++i) {
    const InterruptGuard guard;
    outputs.clear();
    const Stopwatch watch;
    inputs.running(session.GetInputs(),
                   [&] { outputs = session.Run(run_options, names, values, output_names); });
    outcome.times_ms.push_back(watch.elapsed_ms());
    // From here on nothing can fail unless files are to be written, or more runs to be interrupted.
    if (options.json && options.output.empty() && options.repeat == 1) out.begin();
  }
  if (!options.output.empty()) write_outputs(options.output, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    outcome.outputs.push_back(value_json(output_names[i], outputs[i]));
  outcome.memory = session.GetMemoryReport();
  outcome.warnings = session.GetWarnings();
  outcome.arena = session.GetArenaStats();
  outcome.trace = session.EndProfiling();
  return outcome;
}

// A line for a tensor; of lists one more for each of their first elements.
std::string value_text(const Json& value, const std::string& indent) {
  const auto name = value["name"].get<std::string>(), type = value["type"].get<std::string>();
  if (value.contains("first"))
    return fmt::format("{}{}  {}{}  {}\n", indent, name, type, value["shape"].dump(), value["first"].dump());
  const auto kind = value["kind"].get<std::string>();
  if (!value.contains("count"))
    return fmt::format("{}{}  {}({}) without a value\n", indent, name, kind, type);
  std::string text =
      fmt::format("{}{}  {}({}) of {}\n", indent, name, kind, type, value["count"].get<size_t>());
  for (const Json& element : value["elements"]) text += value_text(element, indent + "  ");
  return text;
}

void print_outcome(const RunOutcome& outcome, const Json& report) {
  for (const Json& output : outcome.outputs) print(value_text(output, ""));
  print(fmt::format("\n{:.3f} ms (median of {})\n\n", median(outcome.times_ms), outcome.times_ms.size()));
  print(accounts_table(report["accounts"], "measured peak", outcome.memory.peak_bytes));
  print(fmt::format(
      "  {:<16}{:>16}{}\n\nprocess: {} before, {} at its peak, {} after (code and libraries: {})\n",
      "told before", grouped(outcome.predicted_bytes),
      outcome.depends_on_data ? "  (without values whose shape depends on data)" : "",
      human_bytes(report["before_rss_bytes"].get<int64_t>()),
      human_bytes(report["peak_rss_bytes"].get<int64_t>()),
      human_bytes(report["after_rss_bytes"].get<int64_t>()),
      human_bytes(report["after_rss_bytes"].get<int64_t>() -
                  report["after_anonymous_bytes"].get<int64_t>())));
}

void print_arena(const ArenaStats& stats) {
  print("\narena\n");
  for (const auto& [name, value] : stats.ToMap())
    print(fmt::format("  {:<20}{:>16}\n", name, grouped(value)));
}

int run(const RunCommandOptions& options) {
  catch_interrupts();
  const Env env = options.engine.make_env();
  JsonOutput out;
  const ProcessMemory before = read_process_memory();
  const RunOutcome outcome = execute(options, env, out);
  const ProcessMemory after = read_process_memory();
  Json report = {{"predicted_bytes", outcome.predicted_bytes},
                 {"measured_bytes", outcome.memory.peak_bytes},
                 {"depends_on_data", outcome.depends_on_data},
                 {"accounts", accounts_json(outcome.memory)},
                 {"before_rss_bytes", before.rss_bytes},
                 {"peak_rss_bytes", after.peak_rss_bytes},
                 {"after_rss_bytes", after.rss_bytes},
                 {"before_anonymous_bytes", before.anonymous_bytes},
                 {"after_anonymous_bytes", after.anonymous_bytes},
                 {"before_file_bytes", before.file_bytes},
                 {"after_file_bytes", after.file_bytes},
                 {"after_ledger_bytes", env.GetMemoryReport().now_bytes},
                 {"median_ms", median(outcome.times_ms)},
                 {"outputs", outcome.outputs},
                 {"warnings", outcome.warnings}};
  if (options.arena_stats) report["arena"] = outcome.arena.ToMap();
  if (!outcome.trace.empty()) report["trace"] = outcome.trace;
  if (options.json) {
    out.finish(report);
  } else {
    print_warnings(outcome.warnings);
    print_outcome(outcome, report);
    if (options.arena_stats) print_arena(outcome.arena);
    if (!outcome.trace.empty()) print(fmt::format("trace: {}\n", outcome.trace));
  }
  return 0;
}

}  // namespace

Command run_command(Arguments parent) {
  Arguments arguments = parent.add_command("run", "Run a model: outputs, time, told and measured bytes");
  auto options = std::make_shared<RunCommandOptions>();
  add_model_option(arguments, options->model);
  add_data_options(arguments, options->inputs);
  add_shape_options(arguments, options->inputs);
  add_limit_option(arguments, options->engine);
  arguments.add_option("--repeat", options->repeat, "run N times").range(1, 1000000);
  arguments.add_option(
      "--output", options->output,
      "a directory for the outputs: 0.npy, 1.npy, ...; of a sequence a folder: 0/0.npy, 0/1.npy, ...");
  add_arena_option(arguments, options->engine);
  arguments.add_flag("--arena-stats", options->arena_stats,
                     "tell what the arena has done, by ONNX Runtime's names");
  arguments.add_flag("--shrink", options->shrink, "give the arena's free regions back after each run");
  arguments.add_option("--trace", options->trace, "write a Chrome trace to PREFIX_DATE_TIME.json")
      .check(check_not_empty);
  add_engine_options(arguments, options->engine);
  add_json_option(arguments, options->json);
  arguments.footer(
      "Example: plimsoll run model.onnx --input x=image.npy --limit 64MiB --output answers\n"
      "Without --input, reproducible random data of the shapes that --shape and --dim give.");
  return {arguments, [options] { return run(*options); }};
}

}  // namespace plimsoll::cli
