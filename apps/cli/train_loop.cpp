#include "train_loop.h"

#include <fmt/format.h>
#include <plimsoll/error.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "interrupt.h"
#include "timing.h"

namespace plimsoll::cli {
namespace {

constexpr const char *kEpoch = "train.epoch", *kPosition = "train.position", *kSeed = "train.seed",
                     *kBatch = "train.batch", *kRows = "train.examples", *kEpochLoss = "train.epoch_loss",
                     *kBest = "train.best", *kBad = "train.bad", *kOptimizer = "train.optimizer";

int64_t integer(const CheckpointState& state, const char* name) {
  return std::get<int64_t>(state.GetProperty(name));
}

class Loop {
 public:
  Loop(TrainingSession& session, const TrainData& data, const TrainData* validation,
       const LoopOptions& options, const std::function<void(const Progress&)>& tell)
      : session_(session), data_(data), validation_(validation), options_(options), tell_(tell) {
    per_update_ = options.batch * options.accumulate;
    if (options.batch < 1 || options.accumulate < 1 || data.rows() < per_update_)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("a batch of {}: expected 1 to {}, as many examples as there are", per_update_,
                              data.rows()));
    updates_ = data.rows() / per_update_;
    batch_ = data.make_batch(options.batch);
    if (options.accumulate > 1) session.SetGradientScale(1 / static_cast<float>(options.accumulate));
    loss_.push_back(Value::CreateTensor(ElementType::kFloat, {}));
  }

  LoopReport run() {
    if (options_.resume) resume();
    const Stopwatch watch;
    bool go_on = true;
    for (; go_on && epoch_ < options_.epochs; ++epoch_, position_ = 0) {
      go_on = run_epoch(watch);
      if (!go_on) break;
      report_.losses.push_back(epoch_loss_ / static_cast<double>(updates_));
      epoch_loss_ = 0;
      report_.epochs = epoch_ + 1;
      if (validation_ != nullptr) go_on = validate();
      if (!options_.checkpoint.empty() && options_.checkpoint_every == 0) save(epoch_ + 1, 0);
    }
    report_.seconds = watch.elapsed_ms() / 1000;
    if (!options_.checkpoint.empty() && options_.checkpoint_every > 0) save(epoch_, position_);
    return std::move(report_);
  }

 private:
  // False: enough steps.
  bool run_epoch(const Stopwatch& watch) {
    order_.resize(static_cast<size_t>(data_.rows()));
    if (options_.shuffle) {
      order_ = shuffled(data_.rows(), options_.seed, epoch_);
    } else {
      std::iota(order_.begin(), order_.end(), 0);
    }
    for (; position_ < updates_; ++position_) {
      if (options_.max_steps > 0 && session_.GetStep() >= options_.max_steps) return false;
      check_interrupted();
      const auto rate = static_cast<double>(session_.GetLearningRate());
      const Stopwatch one;
      const double loss = update();
      const double ms = one.elapsed_ms();
      if (report_.steps == 0) report_.first_loss = loss;
      if (report_.steps == 0 || ms < report_.fastest_ms) report_.fastest_ms = ms;
      report_.last_loss = loss;
      epoch_loss_ += loss;
      ++report_.steps;
      report_.examples += per_update_;
      const double seconds = watch.elapsed_ms() / 1000;
      tell_({epoch_ + 1, options_.epochs, position_ + 1, updates_, loss,
             seconds > 0 ? static_cast<double>(report_.examples) / seconds : 0, rate});
      if (options_.checkpoint_every > 0 && session_.GetStep() % options_.checkpoint_every == 0)
        save(epoch_, position_ + 1);
    }
    return true;
  }

  double update() {
    double sum = 0;
    const int64_t* rows = order_.data() + position_ * per_update_;
    for (int64_t part = 0; part < options_.accumulate; ++part, rows += options_.batch) {
      data_.fill(batch_, rows);
      if (rows + 2 * options_.batch <= order_.data() + order_.size())
        data_.expect(rows + options_.batch, options_.batch);
      session_.TrainStep(std::span<const Value>(batch_), loss_);
      const double loss = static_cast<double>(*loss_[0].GetTensorData<float>());
      if (!std::isfinite(loss))
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("step {}: expected a finite loss, found {}; the parameters are those before it",
                        session_.GetStep(), loss));
      sum += loss;
    }
    if (options_.accumulate > 1) {
      session_.OptimizerStep();
      session_.LazyResetGrad();
    }
    session_.SchedulerStep();
    return sum / static_cast<double>(options_.accumulate);
  }

  // False: no better for too long.
  bool validate() {
    std::vector<Value> outputs(session_.OutputNames(false).size());
    double sum = 0;
    int64_t right = 0, counted = 0, batches = 0;
    std::vector<int64_t> rows(static_cast<size_t>(options_.batch));
    for (int64_t begin = 0; begin + options_.batch <= validation_->rows();
         begin += options_.batch, ++batches) {
      std::iota(rows.begin(), rows.end(), begin);
      validation_->fill(batch_, rows.data());
      session_.EvalStep(std::span<const Value>(batch_), outputs);
      sum += static_cast<double>(*outputs[0].GetTensorData<float>());
      count_right(outputs[1], batch_.back(), right, counted);
      check_interrupted();
    }
    if (batches == 0)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("validation: expected at least {} examples, found {}", options_.batch,
                              validation_->rows()));
    report_.validation_loss = sum / static_cast<double>(batches);
    report_.accuracy = counted > 0 ? static_cast<double>(right) / static_cast<double>(counted) : -1;
    session_.SchedulerStep(report_.validation_loss);
    if (!report_.validated || report_.validation_loss < report_.best_validation_loss) {
      report_.best_validation_loss = report_.validation_loss;
      bad_ = 0;
    } else if (++bad_ >= options_.patience && options_.patience > 0) {
      report_.stopped_early = true;
    }
    report_.validated = true;
    return !report_.stopped_early;
  }

  // Where the labels are classes of a matrix of scores.
  static void count_right(const Value& scores, const Value& labels, int64_t& right, int64_t& counted) {
    if (labels.GetElementType() != ElementType::kInt64 || scores.GetElementType() != ElementType::kFloat)
      return;
    if (scores.GetShape().size() != 2 || labels.GetShape().size() != 1) return;
    const auto classes = scores.GetShape()[1];
    const auto* row = scores.GetTensorData<float>();
    for (int64_t i = 0; i < scores.GetShape()[0]; ++i, row += classes, ++counted)
      right += std::max_element(row, row + classes) - row == labels.GetTensorData<int64_t>()[i];
  }

  void save(int64_t epoch, int64_t position) {
    const InterruptGuard guard;
    CheckpointState more;
    more.AddProperty(kEpoch, epoch);
    more.AddProperty(kPosition, position);
    more.AddProperty(kSeed, static_cast<int64_t>(options_.seed));
    more.AddProperty(kBatch, per_update_);
    more.AddProperty(kRows, data_.rows());
    more.AddProperty(kEpochLoss, fmt::format("{:a}", position == 0 ? 0.0 : epoch_loss_));
    more.AddProperty(kBest, fmt::format("{:a}", report_.validated ? report_.best_validation_loss : INFINITY));
    more.AddProperty(kBad, bad_);
    more.AddProperty(kOptimizer, options_.optimizer);
    session_.SaveCheckpoint(options_.checkpoint, more);
    ++report_.checkpoints;
  }

  // The same data in the same order, or it would not be the same training.
  void resume() {
    struct stat info;
    if (::stat(options_.checkpoint.c_str(), &info) != 0) return;  // nothing yet: it starts
    const CheckpointState state = CheckpointState::LoadCheckpoint(options_.checkpoint);
    const auto expect = [&](const char* name, int64_t value, const char* what) {
      if (integer(state, name) != value)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{}: expected to go on with {} {}, found {}", options_.checkpoint, what,
                                integer(state, name), value));
    };
    expect(kSeed, static_cast<int64_t>(options_.seed), "seed");
    expect(kBatch, per_update_, "batch");
    expect(kRows, data_.rows(), "examples");
    expect_optimizer(state);
    session_.SetState(state);
    epoch_ = integer(state, kEpoch);
    position_ = integer(state, kPosition);
    bad_ = integer(state, kBad);
    epoch_loss_ = std::strtod(std::get<std::string>(state.GetProperty(kEpochLoss)).c_str(), nullptr);
    const double best = std::strtod(std::get<std::string>(state.GetProperty(kBest)).c_str(), nullptr);
    report_.validated = std::isfinite(best);
    report_.best_validation_loss = report_.validated ? best : 0;
    report_.resumed_at = session_.GetStep();
    report_.epochs = epoch_;
  }

  // Its moments would be taken for others, or lost. Older files do not tell.
  void expect_optimizer(const CheckpointState& state) const {
    if (!state.HasProperty(kOptimizer)) return;
    const auto before = std::get<std::string>(state.GetProperty(kOptimizer));
    if (before != options_.optimizer)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected to go on with optimizer {}, found {}", options_.checkpoint,
                              before, options_.optimizer));
  }

  TrainingSession& session_;
  const TrainData& data_;
  const TrainData* validation_;
  const LoopOptions& options_;
  const std::function<void(const Progress&)>& tell_;
  int64_t per_update_ = 0, updates_ = 0;  // examples of an update; updates of an epoch
  int64_t epoch_ = 0, position_ = 0, bad_ = 0;
  double epoch_loss_ = 0;
  std::vector<int64_t> order_;
  std::vector<Value> batch_, loss_;
  LoopReport report_;
};

}  // namespace

LoopReport train(TrainingSession& session, const TrainData& data, const TrainData* validation,
                 const LoopOptions& options, const std::function<void(const Progress&)>& tell) {
  return Loop(session, data, validation, options, tell).run();
}

}  // namespace plimsoll::cli
