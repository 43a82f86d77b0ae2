// What is behind a TrainingSession.
#pragma once

#include "plimsoll/training.h"
#include "runtime/checkpoint_state.h"
#include "runtime/session_impl.h"
#include "train/training_graph.h"

namespace plimsoll {

// Throws kInvalidArgument of numbers that no training can have.
void check_options(const TrainingOptions& options);
// Shapes of the labels and of the numbers of a step follow from those of the model's inputs.
Shapes training_shapes(const Graph& graph, const Shapes& given);
// What a training graph makes of a session: kept in `built`.
Session::Impl::Rewrite training_rewrite(const TrainingOptions& options, TrainingGraph& built);
// The runs of a session with these options.
std::vector<ShapePlan::Wanted> training_runs(const TrainingOptions& options, const TrainingGraph& built);
Plan describe_training(const PreparedModel& model, const TrainingGraph& built,
                       std::span<const std::shared_ptr<ShapePlan>> plans);

// The rate from step to step.
struct RateSchedule {
  ScheduleOptions options;
  double initial_rate = 0;
  int64_t step = 0;
  // Of kPlateau:
  double best = 0, factor = 1;
  int64_t bad = 0;
  bool has_best = false;

  double rate() const { return initial_rate * factor * schedule_factor(options, step); }
  void evaluate(double loss);
  std::string to_text() const;
  void from_text(const std::string& text);  // throws kInvalidModel
};

struct TrainingSession::Impl {
  Impl(const Env& env, const std::string& model_path, const TrainingOptions& options);

  void run(std::span<const Value> inputs, std::span<Value> outputs, const ShapePlan::Wanted& wanted);
  void train(std::span<const Value> inputs, std::span<Value> outputs);
  void evaluate(std::span<const Value> inputs, std::span<Value> outputs);
  void optimize();
  std::vector<std::shared_ptr<ShapePlan>> plans();
  CheckpointContents contents() const;  // bytes are those of the session
  void set(const CheckpointContents& contents);
  std::span<std::byte> bytes(const Edge& state) const;
  const Edge& parameter(const std::string& name) const;

  std::shared_ptr<Env::Impl> env;
  std::string path;
  TrainingOptions options;
  TrainingGraph graph;
  std::unique_ptr<Session::Impl> session;
  ShapePlan::Wanted train_run, optimizer_run, evaluation_run;
  std::vector<std::vector<int64_t>> shapes;  // of the last step, for runs without inputs
  float rate = 0, scale = 1;
  int64_t step = 0;     // updates so far
  int64_t counter = 0;  // TrainSteps so far: what random operators draw from
  bool reset = true;    // the next TrainStep begins the sum of gradients anew
  RateSchedule schedule;

 private:
  void set_numbers();
  void check_given(std::span<const Value> inputs) const;

  std::vector<Value> values_;  // by input of the graph
  std::vector<Value> absent_;  // stand for inputs that a run does not read
  RunOptions run_options_;
};

}  // namespace plimsoll
