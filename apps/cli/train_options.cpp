#include "train_options.h"

#include <fmt/format.h>

#include <map>

#include "command.h"

namespace plimsoll::cli {
namespace {

const std::map<std::string, LossType> kLosses = {
    {"none", LossType::kNone},
    {"crossentropy", LossType::kCrossEntropy},
    {"nll", LossType::kNLL},
    {"mse", LossType::kMSE},
    {"l1", LossType::kL1},
    {"smoothl1", LossType::kSmoothL1},
    {"huber", LossType::kHuber},
    {"bce", LossType::kBCE},
    {"bcewithlogits", LossType::kBCEWithLogits},
    {"kldiv", LossType::kKLDiv},
};
const std::map<std::string, LossReduction> kReductions = {
    {"mean", LossReduction::kMean}, {"sum", LossReduction::kSum}, {"batchmean", LossReduction::kBatchMean}};
const std::map<std::string, OptimizerType> kOptimizers = {
    {"sgd", OptimizerType::kSGD},         {"adam", OptimizerType::kAdam},
    {"adamw", OptimizerType::kAdamW},     {"adamw-hf", OptimizerType::kAdamWHuggingFace},
    {"adagrad", OptimizerType::kAdagrad}, {"rmsprop", OptimizerType::kRMSprop},
    {"lamb", OptimizerType::kLamb},
};
const std::map<std::string, ScheduleOptions::Type> kSchedules = {
    {"constant", ScheduleOptions::Type::kConstant},       {"linear", ScheduleOptions::Type::kLinear},
    {"cosine", ScheduleOptions::Type::kCosine},           {"step", ScheduleOptions::Type::kStep},
    {"exponential", ScheduleOptions::Type::kExponential}, {"one-cycle", ScheduleOptions::Type::kOneCycle},
    {"plateau", ScheduleOptions::Type::kPlateau},
};

const std::map<std::string, TrainingPrecision> kPrecisions = {{"f32", TrainingPrecision::kFloat},
                                                              {"bf16", TrainingPrecision::kBFloat16}};

template <typename T>
T chosen(const std::map<std::string, T>& known, const std::string& word, const char* option) {
  const auto found = known.find(word);
  if (found != known.end()) return found->second;
  std::string words;
  for (const auto& [name, value] : known) words += fmt::format("{}{}", words.empty() ? "" : ", ", name);
  throw UsageError(fmt::format("{}: expected one of {}, found '{}'", option, words, word));
}

}  // namespace

TrainingOptions TrainCommandOptions::training() const {
  TrainingOptions t;
  t.loss = chosen(kLosses, loss, "--loss");
  t.reduction = chosen(kReductions, reduction, "--reduction");
  t.loss_beta = loss_beta;
  t.output = score_output;
  t.labels = labels;
  OptimizerOptions& o = t.optimizer;
  o.type = chosen(kOptimizers, optimizer, "--optimizer");
  o.learning_rate = static_cast<float>(rate);
  // What PyTorch takes if it is not told.
  const double own_decay = o.type == OptimizerType::kAdamW ? 0.01 : 0;
  o.weight_decay = static_cast<float>(weight_decay < 0 ? own_decay : weight_decay);
  o.momentum = static_cast<float>(momentum);
  o.nesterov = nesterov;
  o.beta1 = static_cast<float>(beta1);
  o.beta2 = static_cast<float>(beta2);
  o.epsilon = static_cast<float>(epsilon);
  o.max_grad_norm = static_cast<float>(clip_norm);
  o.max_grad_value = static_cast<float>(clip_value);
  t.schedule.type = chosen(kSchedules, schedule, "--schedule");
  t.schedule.warmup_steps = warmup;
  t.schedule.total_steps = schedule_steps;
  t.schedule.step_size = step_size;
  t.schedule.gamma = gamma;
  t.trainable = trainable;
  t.frozen = frozen;
  t.keep_gradients = loop.accumulate > 1;
  t.evaluate = !validation.empty();
  t.seed = loop.seed;
  t.recompute = recompute;
  t.precision = chosen(kPrecisions, precision, "--precision");
  if (devinfo) t.memory_detail = TableDetail::kDevInfo;
  t.session = engine.session_options();
  return t;
}

void add_train_options(Arguments a, TrainCommandOptions& o) {
  add_model_option(a, o.model);
  a.add_option("--data", o.data, "a folder with NAME.npy for every input and labels.npy").required();
  a.add_option("--loss", o.loss,
               "crossentropy, nll, mse, l1, smoothl1, huber, bce, bcewithlogits, kldiv, none");
  a.add_option("--reduction", o.reduction, "of the loss: mean, sum or batchmean");
  a.add_option("--loss-beta", o.loss_beta, "where smoothl1 and huber become linear");
  a.add_option("--labels", o.labels, "what the labels' file is called");
  a.add_option("--score", o.score_output, "the output that the loss looks at (the first)");
  a.add_option("--optimizer", o.optimizer, "sgd, adam, adamw, adamw-hf, adagrad, rmsprop or lamb");
  a.add_option("--lr,--rate", o.rate, "the learning rate");
  a.add_option("--weight-decay", o.weight_decay, "(adamw 0.01, others 0)");
  a.add_option("--momentum", o.momentum, "of sgd and rmsprop");
  a.add_flag("--nesterov", o.nesterov, "of sgd");
  a.add_option("--beta1", o.beta1, "of adam and lamb");
  a.add_option("--beta2", o.beta2, "of adam and lamb");
  a.add_option("--epsilon", o.epsilon, "instead of the optimizer's own");
  a.add_option("--clip-norm", o.clip_norm, "the most that the norm of all gradients may be");
  a.add_option("--clip-value", o.clip_value, "the most that an element of a gradient may be");
  a.add_option("--schedule", o.schedule, "constant, linear, cosine, step, exponential, one-cycle or plateau");
  a.add_option("--warmup", o.warmup, "steps in which the rate grows to --lr").not_negative();
  a.add_option("--schedule-steps", o.schedule_steps, "steps of the schedule (all)").not_negative();
  a.add_option("--step-size", o.step_size, "of --schedule step").not_negative();
  a.add_option("--gamma", o.gamma, "of --schedule step, exponential and plateau");
  a.add_option("--trainable", o.trainable, "a pattern of weights to train, with *; repeatable (all)")
      .one_value_each();
  a.add_option("--frozen", o.frozen, "a pattern of weights to leave as they are; repeatable")
      .one_value_each();
  a.add_option("--epochs", o.loop.epochs, "passes over the data").not_negative();
  a.add_option("--batch", o.loop.batch, "examples of a step");
  a.add_option("--accumulate", o.loop.accumulate, "steps whose gradients are added up for one update");
  a.add_option("--max-steps", o.loop.max_steps, "stop after so many updates").not_negative();
  a.add_option("--seed", o.loop.seed, "of the order of the data and of dropout");
  a.add_flag("--no-shuffle", o.no_shuffle, "the examples in the order of the files");
  a.add_option("--validation", o.validation, "a folder like --data, looked at after every epoch");
  a.add_option("--patience", o.loop.patience, "stop after so many epochs without a better validation")
      .not_negative();
  a.add_option("--checkpoint", o.loop.checkpoint, "a file that always holds the last complete state");
  a.add_option("--checkpoint-every", o.loop.checkpoint_every, "updates (one epoch)").not_negative();
  a.add_flag("--resume", o.loop.resume, "go on from --checkpoint, if it is there");
  a.add_option("--output", o.output, "the trained model, for inference");
  a.add_option("--log", o.log, "a CSV file with step, loss and rate of every update");
  a.add_option("--recompute", o.recompute, "auto (as --limit needs), none, level1, level2 or a file");
  a.add_option("--precision", o.precision,
               "f32, or bf16: what the backward part reads is kept in bfloat16 where that saves memory");
  a.add_flag("--plan", o.plan, "tell the peak and its parts without training");
  a.add_flag("--devinfo", o.devinfo, "with --plan: the memory optimizer's table by node");
  a.add_option("--solve", o.solve, "with --plan: batch, the largest one that fits --limit").one_of({"batch"});
  a.add_option("--svg", o.svg, "with --plan: a picture of the lifetimes and offsets");
  a.add_option("--html", o.html, "with --plan: the same as a page");
  add_limit_option(a, o.engine);
  add_engine_options(a, o.engine);
  add_json_option(a, o.json);
  a.footer(
      "Example: plimsoll train model.onnx --data DIR --loss crossentropy --optimizer adamw --limit 600MiB\n"
      "         plimsoll train model.onnx --data DIR --limit 600MiB --plan --solve batch");
}

}  // namespace plimsoll::cli
