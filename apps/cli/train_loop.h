// Epochs, validation, checkpoints: the loop around a TrainingSession.
#pragma once

#include <plimsoll/training.h>

#include <functional>
#include <string>

#include "train_data.h"

namespace plimsoll::cli {

struct LoopOptions {
  int64_t epochs = 1, batch = 32, accumulate = 1, max_steps = 0;  // 0: all of the epochs
  uint64_t seed = 1;
  bool shuffle = true;
  std::string optimizer;         // its name: a checkpoint of another is refused
  std::string checkpoint;        // where; empty: none
  int64_t checkpoint_every = 0;  // updates; 0: after every epoch
  bool resume = false;
  int64_t patience = 0;  // epochs without a better validation before it stops; 0: never
};

struct LoopReport {
  int64_t steps = 0, epochs = 0, examples = 0, resumed_at = 0, checkpoints = 0;
  double first_loss = 0, last_loss = 0, seconds = 0;
  double validation_loss = 0, accuracy = -1, best_validation_loss = 0;  // accuracy below 0: no classes
  bool validated = false, stopped_early = false;
  std::vector<double> losses;  // the mean of each epoch
  double fastest_ms = 0;       // of the updates
  double examples_per_second() const { return seconds > 0 ? static_cast<double>(examples) / seconds : 0; }
};

struct Progress {
  int64_t epoch = 0, epochs = 0, step = 0, steps = 0;
  double loss = 0, examples_per_second = 0;
  double rate = 0;
};

// Throws kInvalidArgument of a batch that the examples do not fill, or a loss that is not finite: what it was
// before stays, in memory and on the disk.
LoopReport train(TrainingSession& session, const TrainData& data, const TrainData* validation,
                 const LoopOptions& options, const std::function<void(const Progress&)>& tell);

}  // namespace plimsoll::cli
