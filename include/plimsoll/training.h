// TrainingSession: trains an ONNX model inside a memory limit.
//
// A step (forward, loss, backward, clipping, optimizer) is one graph, planned and run by the engine that
// infers: its peak is told before anything is allocated, parameters and moments are updated in place, and a
// step with bound outputs makes no heap call. The spellings are those of ONNX Runtime's training API.
//
// A session is used by one thread at a time. After an Error the parameters are those before the step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/env.h"
#include "plimsoll/gradient.h"
#include "plimsoll/model.h"
#include "plimsoll/plan.h"
#include "plimsoll/session_options.h"
#include "plimsoll/value.h"

namespace plimsoll {

enum class LossType : uint8_t {
  kNone,          // the model's first output is the loss
  kCrossEntropy,  // scores and the numbers of classes
  kNLL,           // logarithms of probabilities and the numbers of classes
  kMSE,
  kL1,
  kSmoothL1,  // quadratic below `loss_beta`
  kHuber,
  kBCE,  // probabilities
  kBCEWithLogits,
  kKLDiv,  // logarithms of probabilities and probabilities
};
enum class LossReduction : uint8_t { kMean, kSum, kBatchMean };
enum class OptimizerType : uint8_t {
  kSGD,
  kAdam,
  kAdamW,             // PyTorch's order: the weights decay before the step
  kAdamWHuggingFace,  // after it
  kAdagrad,
  kRMSprop,
  kLamb,
};

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdamW;
  float learning_rate = 1e-3f;
  float weight_decay = 0;  // AdamW's in PyTorch is 0.01
  float momentum = 0, dampening = 0;
  bool nesterov = false, centered = false;
  float beta1 = 0.9f, beta2 = 0.999f;
  float alpha = 0.99f;       // of RMSprop
  float rate_decay = 0;      // of Adagrad
  float epsilon = -1;        // below 0: the optimizer's own: 1e-8, Adagrad 1e-10, Lamb 1e-6
  float max_grad_norm = 0;   // of all gradients together; 0: not clipped
  float max_grad_value = 0;  // of each element; 0: not clipped
};

// How the rate goes from step to step. Step 0 is the first.
struct ScheduleOptions {
  enum class Type : uint8_t { kConstant, kLinear, kCosine, kStep, kExponential, kOneCycle, kPlateau };
  Type type = Type::kConstant;
  int64_t warmup_steps = 0;  // from 0 up to the initial rate, for every type
  int64_t total_steps = 0;   // linear and cosine end here, at `final_factor`; one-cycle too
  double final_factor = 0;
  int64_t step_size = 1;       // of kStep: the rate is multiplied with gamma every so many steps
  double gamma = 0.1;          // of kStep, kExponential (every step) and kPlateau
  double peak_fraction = 0.3;  // of kOneCycle: where the initial rate, its highest, is reached
  double start_factor = 0.04;  // of kOneCycle: where it begins, times the initial rate
  int64_t patience = 10;       // of kPlateau: evaluations without a better loss
  double threshold = 1e-4;     // of kPlateau: better is by this part of the best
};
// The factor of the initial rate at `step`; of kPlateau without what evaluations did.
double schedule_factor(const ScheduleOptions& schedule, int64_t step);

struct TrainingOptions {
  LossType loss = LossType::kCrossEntropy;
  LossReduction reduction = LossReduction::kMean;
  double loss_beta = 1;           // of kSmoothL1 (beta) and kHuber (delta)
  int64_t ignore_index = -100;    // labels of this class count nothing
  int class_axis = -1;            // of the scores; -1: the second, of three dimensions the last
  std::string output;             // the output that the loss looks at; empty: the first
  std::string labels = "labels";  // what the input for the labels is called
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  // Patterns with '*' of the initializers that are trained; none: every float weight that a gradient reaches.
  std::vector<std::string> trainable;
  std::vector<std::string> frozen;  // of these, those that are not
  // False: a TrainStep updates the parameters at once, gradients live only as long as they are needed, and
  // OptimizerStep is an Error. True: gradients are kept and added up (account `gradients`) until
  // OptimizerStep and LazyResetGrad, as ONNX Runtime has it.
  bool keep_gradients = true;
  bool evaluate = true;  // plan for EvalStep too
  uint64_t seed = 1;     // of dropout and other random operators
  // How memory is met: "auto" (as the limit needs), "none", "level1", "level2", or the path of a file.
  std::string recompute = "auto";
  // What is rounded depends on `shapes`, where they are given, and on no limit.
  TrainingPrecision precision = TrainingPrecision::kFloat;
  TableDetail memory_detail = TableDetail::kInfo;  // of Plan::memory_optimizer
  Shapes shapes;           // of the inputs; planned, and held against the limit, before weights are loaded
  SessionOptions session;  // threads, memory_limit_bytes, ...
};

using Property = std::variant<int64_t, float, std::string>;

// What a training stands at: parameters, the optimizer's moments, gradients that wait, and numbers. A value
// type that shares the tensors' bytes when copied.
class CheckpointState {
 public:
  CheckpointState();

  // Ours, or one of ONNX Runtime's own ("ODTC"). Throws kIo, and kInvalidModel naming what is wrong with a
  // file that is no checkpoint, or is damaged.
  static CheckpointState LoadCheckpoint(const std::string& path);
  static CheckpointState LoadCheckpointFromBuffer(std::span<const std::byte> buffer);
  // Written beside, synced, renamed: there is always a complete one at `path`. Throws kIo.
  static void SaveCheckpoint(const CheckpointState& state, const std::string& path,
                             bool include_optimizer_state = false);

  void AddProperty(const std::string& name, const Property& value);
  Property GetProperty(const std::string& name) const;  // throws kInvalidArgument
  bool HasProperty(const std::string& name) const;
  void UpdateParameter(const std::string& name, const Value& value);
  Value GetParameter(const std::string& name) const;  // throws kInvalidArgument
  std::vector<std::string> ParameterNames() const;
  std::vector<std::string> TensorNames() const;  // those of moments, gradients and statistics too
  std::vector<std::string> PropertyNames() const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

class TrainingSession {
 public:
  // From a model as it was exported for inference. Throws kNotImplemented naming every node without a
  // gradient, kBudgetExceeded with the smallest limit that would do.
  TrainingSession(const Env& env, const std::string& model_path, const TrainingOptions& options = {});
  // The same, with what a checkpoint knows.
  TrainingSession(const Env& env, const std::string& model_path, const CheckpointState& state,
                  const TrainingOptions& options = {});
  TrainingSession(TrainingSession&&) noexcept;
  TrainingSession& operator=(TrainingSession&&) noexcept;
  ~TrainingSession();

  // What a session with these options would hold at its most; no tensor memory is taken.
  static Plan MakePlan(const Env& env, const std::string& model_path, const TrainingOptions& options);
  // Of this session, for the shapes that it was opened with.
  Plan GetPlan() const;

  // The model's inputs, then the labels.
  std::vector<std::string> InputNames(bool training = true) const;
  const std::vector<ValueInfo>& GetInputs() const;
  // The loss; of an evaluation the model's outputs after it.
  std::vector<std::string> OutputNames(bool training = true) const;

  // One forward and backward pass: returns the loss.
  std::vector<Value> TrainStep(const std::vector<Value>& inputs);
  // The same without any heap call where `outputs` are bound.
  void TrainStep(std::span<const Value> inputs, std::span<Value> outputs);
  std::vector<Value> EvalStep(const std::vector<Value>& inputs);
  void EvalStep(std::span<const Value> inputs, std::span<Value> outputs);
  void OptimizerStep();
  // The next TrainStep begins the sum of gradients anew.
  void LazyResetGrad();
  // What gradients are multiplied with in OptimizerStep: 1 over the number of micro-batches for their mean.
  void SetGradientScale(float scale);

  void SetLearningRate(float rate);  // throws kInvalidArgument unless it is finite and at least 0
  float GetLearningRate() const;
  void RegisterLinearLRScheduler(int64_t warmup_steps, int64_t total_steps, float initial_rate);
  void RegisterLRScheduler(const ScheduleOptions& schedule, float initial_rate);
  void SchedulerStep();
  void SchedulerStep(double evaluation_loss);  // of kPlateau, after an evaluation
  int64_t GetStep() const;                     // updates so far

  // A copy of everything: what SaveCheckpoint writes. Needs as many bytes again.
  CheckpointState GetState() const;
  void SetState(const CheckpointState& state);
  // Straight from the session's memory into a file, with the properties of `more`.
  void SaveCheckpoint(const std::string& path, const CheckpointState& more = {}) const;
  Value GetParameter(const std::string& name) const;  // a view, valid as long as the session
  std::vector<std::string> ParameterNames() const;
  // All parameters one after the other, in the order of ParameterNames. All are trainable.
  Value ToBuffer(bool only_trainable = true) const;
  void FromBuffer(const Value& buffer);
  int64_t GetParametersSize(bool only_trainable = true) const;  // elements

  // The model that it was made from, with the parameters as they are now. Written beside and renamed.
  void ExportModelForInferencing(const std::string& path,
                                 const std::vector<std::string>& output_names = {}) const;

  MemoryReport GetMemoryReport() const;
  std::vector<std::string> GetWarnings() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
