#include <fmt/format.h>
#include <plimsoll/error.h>
#include <plimsoll/training.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "picture.h"
#include "report.h"
#include "timing.h"
#include "train_options.h"

namespace plimsoll::cli {
namespace {

bool is_by_class(LossType loss) {
  return loss == LossType::kCrossEntropy || loss == LossType::kNLL;
}

// The model's inputs, and the labels, of which only the type is known before the loss is built.
std::vector<ValueInfo> given_inputs(const Env& env, const TrainCommandOptions& options,
                                    const TrainingOptions& training) {
  const Model model(env, options.model, training.session);
  std::vector<ValueInfo> inputs;
  for (const ValueInfo& info : model.GetInfo().inputs) {
    if (!info.has_default) inputs.push_back(info);
  }
  if (training.loss == LossType::kNone) return inputs;
  ValueInfo labels;
  labels.name = training.labels;
  labels.type = is_by_class(training.loss) ? ElementType::kInt64 : ElementType::kFloat;
  labels.type_text = element_type_name(labels.type);
  inputs.push_back(labels);
  return inputs;
}

Json plan_json(const Plan& plan) {
  return {{"peak_bytes", plan.peak_bytes},
          {"minimum_limit_bytes", plan.minimum_limit_bytes},
          {"lower_bound_bytes", plan.lower_bound_bytes},
          {"accounts", accounts_json(plan)},
          {"node_at_peak", plan.node_at_peak},
          {"steps", plan.steps.size()},
          {"threads", plan.threads},
          {"instruction_set", plan.instruction_set},
          {"prepare_ms", plan.prepare_ms}};
}

// The largest batch whose training fits the limit.
int64_t largest_batch(const Env& env, const TrainCommandOptions& options, TrainingOptions training,
                      const TrainData& data) {
  const int64_t limit = training.session.memory_limit_bytes;
  if (limit == 0) throw UsageError("--solve needs --limit");
  const auto fits = [&](int64_t batch) {
    check_interrupted();
    training.shapes = data.shapes(batch);
    try {
      TrainingSession::MakePlan(env, options.model, training);
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBudgetExceeded && batch > 1) return false;
      throw;
    }
  };
  fits(1);
  int64_t most = 1, too_large = 2;
  while (too_large < (int64_t{1} << 24) && fits(too_large)) most = too_large, too_large *= 2;
  while (too_large - most > 1) {
    const int64_t middle = most + (too_large - most) / 2;
    (fits(middle) ? most : too_large) = middle;
  }
  return most;
}

// The same step without rounding, wherever it ends.
int64_t float_peak(const Env& env, const TrainCommandOptions& options, TrainingOptions training) {
  training.precision = TrainingPrecision::kFloat;
  training.session.memory_limit_bytes = 0;
  return TrainingSession::MakePlan(env, options.model, training).peak_bytes;
}

int64_t rounded_bytes(const Plan& plan) {
  int64_t sum = 0;
  for (const RoundedValue& value : plan.rounded) sum += value.saved_bytes;
  return sum;
}

int tell_plan(const Env& env, const TrainCommandOptions& options, TrainingOptions training,
              const TrainData& data) {
  int64_t batch = options.loop.batch;
  if (!options.solve.empty()) batch = largest_batch(env, options, training, data);
  training.shapes = data.shapes(batch);
  const Plan plan = TrainingSession::MakePlan(env, options.model, training);
  const bool rounds = training.precision == TrainingPrecision::kBFloat16;
  const int64_t in_float = rounds ? float_peak(env, options, training) : plan.peak_bytes;
  NewFiles files;
  if (!options.svg.empty()) files.add(options.svg, {svg_picture(plan)});
  if (!options.html.empty()) files.add(options.html, {html_page(plan, options.model)});
  files.commit();
  if (options.json) {
    Json json = plan_json(plan);
    json["batch"] = batch;
    json["recomputed"] = recomputed_json(plan);
    json["extra_operations"] = plan.extra_operations;
    json["operations"] = plan.operations;
    json["extra_time"] = plan.extra_time;
    json["saved_bytes"] = plan.saved_bytes;
    json["memory_optimizer"] = plan.memory_optimizer;
    json["precision"] = options.precision;
    json["float_peak_bytes"] = in_float;
    json["rounded"] = Json::array();
    for (const RoundedValue& value : plan.rounded)
      json["rounded"].push_back({{"name", value.name}, {"saved_bytes", value.saved_bytes}});
    JsonOutput().finish(json);
    return 0;
  }
  std::string text = fmt::format("a step with a batch of {}\n", batch);
  text += accounts_table(accounts_json(plan), "peak", plan.peak_bytes);
  text += fmt::format("  {:<16}{:>16}\n", "smallest limit", grouped(plan.minimum_limit_bytes));
  text += fmt::format("node at the peak: {}\n{} threads, {}\n", plan.node_at_peak, plan.threads,
                      plan.instruction_set);
  if (rounds)
    text += fmt::format(
        "bfloat16: {} results of the forward part are kept in it, in {} bytes less; in float, without a "
        "limit, "
        "the peak is {}\n",
        plan.rounded.size(), grouped(rounded_bytes(plan)), grouped(in_float));
  text += recomputed_text(plan) + plan.memory_optimizer;
  constexpr int kWidth = 72, kHeight = 12;
  text += fmt::format("planned memory: offsets upwards, {} steps to the right\n", plan.steps.size()) +
          ascii_picture(plan, kWidth, kHeight);
  print(text);
  return 0;
}

// A line that overwrites itself for a person, twice a second.
class ProgressLine {
 public:
  explicit ProgressLine(bool on) : on_(on && ::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  void operator()(const Progress& p, int64_t bytes) {
    if (!on_ || (shown_ && watch_.elapsed_ms() < 500)) return;
    watch_ = Stopwatch();
    shown_ = true;
    const std::string line =
        fmt::format("epoch {}/{} step {}/{}  loss {:.4f}  {:.0f} examples/s  {}", p.epoch, p.epochs, p.step,
                    p.steps, p.loss, p.examples_per_second, human_bytes(bytes));
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
  }

 private:
  const bool on_;
  bool shown_ = false;
  Stopwatch watch_;
};

// A row for every update, from the first on.
class Log {
 public:
  explicit Log(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_.reset(std::fopen(path.c_str(), "we"));
    if (file_ == nullptr) fail();
    write("step,loss,rate\n");
  }
  void add(int64_t step, const Progress& p) {
    if (file_ != nullptr) write(fmt::format("{},{:.9g},{:.9g}\n", step, p.loss, p.rate));
  }
  void finish() {
    if (file_ != nullptr && std::fclose(file_.release()) != 0) fail();
  }

 private:
  void write(const std::string& line) {
    if (std::fputs(line.c_str(), file_.get()) < 0) fail();
  }
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::kIo, fmt::format("{}: cannot write: {}", path_, std::strerror(errno)));
  }
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

Json report_json(const LoopReport& r, const Plan& plan, const MemoryReport& memory) {
  Json json = {{"steps", r.steps},
               {"epochs", r.epochs},
               {"examples", r.examples},
               {"first_loss", r.first_loss},
               {"last_loss", r.last_loss},
               {"epoch_losses", r.losses},
               {"seconds", r.seconds},
               {"fastest_step_ms", r.fastest_ms},
               {"examples_per_second", r.examples_per_second()},
               {"resumed_at", r.resumed_at},
               {"checkpoints", r.checkpoints},
               {"stopped_early", r.stopped_early},
               {"predicted_bytes", plan.peak_bytes},
               {"measured_bytes", memory.peak_bytes},
               {"limit_bytes", memory.limit_bytes},
               {"accounts", accounts_json(memory)},
               {"peak_rss_bytes", read_process_memory().peak_rss_bytes}};
  if (r.validated) json["validation_loss"] = r.validation_loss;
  if (r.validated && r.accuracy >= 0) json["accuracy"] = r.accuracy;
  return json;
}

int train_model(const TrainCommandOptions& given) {
  catch_interrupts();
  TrainCommandOptions options = given;
  options.loop.shuffle = !options.no_shuffle;
  options.loop.optimizer = options.optimizer;
  if (options.loop.resume && options.loop.checkpoint.empty()) throw UsageError("--resume needs --checkpoint");
  if (options.loop.batch < 1)
    throw UsageError(fmt::format("--batch: expected at least 1, found {}", options.loop.batch));
  if (options.loop.accumulate < 1)
    throw UsageError(fmt::format("--accumulate: expected at least 1, found {}", options.loop.accumulate));
  check_outputs(options.model, {{"--log", options.log},
                                {"--checkpoint", options.loop.checkpoint},
                                {"--svg", options.svg},
                                {"--html", options.html}});
  const Env env = options.engine.make_env();
  TrainingOptions training = options.training();
  const std::vector<ValueInfo> inputs = given_inputs(env, options, training);
  const TrainData data(options.data, inputs);
  if (options.plan) return tell_plan(env, options, training, data);
  std::unique_ptr<TrainData> validation;
  if (!options.validation.empty()) validation = std::make_unique<TrainData>(options.validation, inputs);
  const int64_t updates = data.rows() / (options.loop.batch * options.loop.accumulate) * options.loop.epochs;
  if (training.schedule.total_steps == 0) training.schedule.total_steps = updates;
  training.shapes = data.shapes(options.loop.batch);
  if (!options.output.empty()) check_can_write(options.output);
  TrainingSession session(env, options.model, training);
  const Plan plan = session.GetPlan();
  LoopReport report;
  {
    ProgressLine line(!options.json);
    const int64_t bytes = plan.peak_bytes;
    Log log(options.log);
    report = train(session, data, validation.get(), options.loop, [&](const Progress& p) {
      line(p, bytes);
      log.add(session.GetStep(), p);
    });
    log.finish();
  }
  if (!options.output.empty()) session.ExportModelForInferencing(options.output);
  const MemoryReport memory = session.GetMemoryReport();
  const Json json = report_json(report, plan, memory);
  if (options.json) {
    JsonOutput().finish(json);
    return 0;
  }
  print_warnings(session.GetWarnings());
  std::string text;
  for (size_t i = 0; i < report.losses.size(); ++i)
    text +=
        fmt::format("epoch {}: loss {:.5f}\n",
                    report.epochs - static_cast<int64_t>(report.losses.size()) + static_cast<int64_t>(i) + 1,
                    report.losses[i]);
  text += fmt::format("{} steps, {:.1f} s, {:.0f} examples/s, last loss {:.5f}\n", report.steps,
                      report.seconds, report.examples_per_second(), report.last_loss);
  if (report.validated) text += fmt::format("validation: loss {:.5f}", report.validation_loss);
  if (report.validated && report.accuracy >= 0)
    text += fmt::format(", {:.2f} % right", 100 * report.accuracy);
  if (report.validated) text += report.stopped_early ? ", stopped early\n" : "\n";
  text += accounts_table(json["accounts"], "measured peak", memory.peak_bytes);
  text += fmt::format("  {:<16}{:>16}\n", "told before", grouped(plan.peak_bytes));
  print(text);
  return 0;
}

}  // namespace

Command train_command(Arguments parent) {
  Arguments arguments = parent.add_command("train", "Train a model inside a memory limit");
  auto options = std::make_shared<TrainCommandOptions>();
  add_train_options(arguments, *options);
  return {arguments, [options] { return train_model(*options); }};
}

}  // namespace plimsoll::cli
