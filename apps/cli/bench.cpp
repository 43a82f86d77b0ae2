#include <fmt/core.h>
#include <plimsoll/session.h>

#include <memory>

#include "command.h"
#include "inputs.h"
#include "interrupt.h"
#include "options.h"
#include "profile.h"
#include "report.h"
#include "timing.h"

namespace plimsoll::cli {
namespace {

struct BenchOptions {
  std::string model;
  InputOptions inputs;
  EngineOptions engine;
  double seconds = 2;
  bool profile = false;
  std::string trace;
  bool json = false;
};

constexpr size_t kMinimumRuns = 5;
constexpr size_t kMaximumRuns = 1000000;

struct Timings {
  double load_ms = 0, first_ms = 0;
  std::vector<double> runs_ms;
};

void timed_run(Session& session, IoBinding& binding, std::vector<double>& times_ms) {
  const InterruptGuard guard;
  const Stopwatch watch;
  session.Run(interruptible(), binding);
  times_ms.push_back(watch.elapsed_ms());
}

// Runs for so many seconds, and often enough to have a median.
std::vector<double> repeat(Session& session, IoBinding& binding, double seconds) {
  std::vector<double> times_ms;
  const Stopwatch watch;
  while (times_ms.size() < kMinimumRuns ||
         (watch.elapsed_ms() < 1000 * seconds && times_ms.size() < kMaximumRuns))
    timed_run(session, binding, times_ms);
  return times_ms;
}

// Inputs and outputs stay in the same memory from run to run, as in a service.
IoBinding bind(Session& session, const Inputs& inputs, double& first_ms) {
  IoBinding binding(session);
  const std::vector<ValueInfo>& infos = session.GetInputs();
  const std::vector<Value> values = inputs.values(infos, inputs.complete_shapes(infos));
  for (size_t i = 0; i < infos.size(); ++i) binding.BindInput(infos[i].name, values[i]);
  for (const ValueInfo& info : session.GetOutputs()) binding.BindOutput(info.name);
  std::vector<double> first;
  inputs.running(infos, [&] { timed_run(session, binding, first); });
  first_ms = first[0];
  const std::vector<Value> outputs = binding.GetOutputValues();
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Strings and lists have no fixed size: they are made anew in every run.
    if (session.GetOutputs()[i].kind == ValueKind::kTensor &&
        outputs[i].GetElementType() != ElementType::kString)
      binding.BindOutput(session.GetOutputs()[i].name, outputs[i]);
  }
  return binding;
}

Json to_json(const Timings& timings, const MemoryReport& memory) {
  return {{"load_ms", timings.load_ms},
          {"first_ms", timings.first_ms},
          {"min_ms", quantile(timings.runs_ms, 0)},
          {"median_ms", median(timings.runs_ms)},
          {"p99_ms", quantile(timings.runs_ms, 0.99)},
          {"iterations", timings.runs_ms.size()},
          {"peak_rss_bytes", read_process_memory().peak_rss_bytes},
          {"measured_bytes", memory.peak_bytes},
          {"accounts", accounts_json(memory)},
          {"instruction_set", Env::GetInstructionSet()}};
}

void print_bench(const Json& report) {
  std::string text;
  for (const char* key : {"load_ms", "first_ms", "min_ms", "median_ms", "p99_ms"})
    text += fmt::format("  {:<16}{:>16.3f}\n", key, report[key].get<double>());
  text += fmt::format("  {:<16}{:>16}\n", "iterations", report["iterations"].get<int64_t>());
  text += fmt::format(
      "\n{}", accounts_table(report["accounts"], "ledger's peak", report["measured_bytes"].get<int64_t>()));
  const auto rss = report["peak_rss_bytes"].get<int64_t>();
  text += fmt::format("  {:<16}{:>16}  ({})\n", "peak RSS", grouped(rss), human_bytes(rss));
  print(text + fmt::format("{} threads, {}\n", report["threads"].get<int>(),
                           report["instruction_set"].get<std::string>()));
}

int bench(const BenchOptions& options) {
  catch_interrupts();
  const Env env = options.engine.make_env();
  const Inputs inputs(options.inputs);
  Timings timings;
  const Stopwatch load;
  SessionOptions session_options = options.engine.session_options();
  session_options.overridden_initializers = inputs.named();
  if (!options.trace.empty()) session_options.EnableProfiling(options.trace);
  Session session(env, options.model, session_options);
  timings.load_ms = load.elapsed_ms();
  const Plan plan = session.Prepare(inputs.complete_shapes(session.GetInputs()));
  IoBinding binding = bind(session, inputs, timings.first_ms);
  timings.first_ms += plan.prepare_ms;  // what the first run would have done
  timings.runs_ms = repeat(session, binding, options.seconds);

  Json report = to_json(timings, session.GetMemoryReport());
  report["threads"] = plan.threads;
  report["warnings"] = session.GetWarnings();
  std::string profile_text;
  if (options.profile) {
    session.EnableProfiling(true);
    const size_t runs = repeat(session, binding, options.seconds).size();
    const Profile profile(session.GetProfile(), runs, MeasurePeaks(), plan.threads);
    report["profile"] = profile.json();
    profile_text = profile.text();
  }
  const std::string trace = session.EndProfiling();
  if (!trace.empty()) report["trace"] = trace;
  if (options.json) {
    JsonOutput().finish(report);
  } else {
    print_warnings(session.GetWarnings());
    print_bench(report);
    print(profile_text);
    if (!trace.empty()) print(fmt::format("trace: {}\n", trace));
  }
  return 0;
}

}  // namespace

Command bench_command(Arguments parent) {
  Arguments arguments = parent.add_command("bench", "Measure load, latency, peak RSS and the ledger");
  auto options = std::make_shared<BenchOptions>();
  add_model_option(arguments, options->model);
  add_data_options(arguments, options->inputs);
  add_shape_options(arguments, options->inputs);
  add_limit_option(arguments, options->engine);
  arguments.add_option("--seconds", options->seconds, "how long to repeat the run (2), at least five times")
      .range(0.0, 86400.0);
  arguments.add_flag("--profile", options->profile,
                     "time by operator and by node, and its share of the measured peak, the worst first");
  arguments.add_option("--trace", options->trace, "write a Chrome trace of the runs to PREFIX_DATE_TIME.json")
      .check(check_not_empty);
  add_engine_options(arguments, options->engine);
  add_json_option(arguments, options->json);
  arguments.footer("Example: plimsoll bench model.onnx --shape x=1,3,224,224 --threads 1 --profile");
  return {arguments, [options] { return bench(*options); }};
}

}  // namespace plimsoll::cli
