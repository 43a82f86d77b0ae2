// What `plimsoll train` takes.
#pragma once

#include <plimsoll/training.h>

#include <string>

#include "options.h"
#include "train_loop.h"

namespace plimsoll::cli {

struct TrainCommandOptions {
  std::string model, data, validation, output, solve, html, svg, log;
  std::string loss = "crossentropy", reduction = "mean", optimizer = "adamw", schedule = "constant";
  std::string labels = "labels", score_output, recompute = "auto", precision = "f32";
  double rate = 1e-3, weight_decay = -1, momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = -1;
  double clip_norm = 0, clip_value = 0, loss_beta = 1, gamma = 0.1;
  bool nesterov = false, no_shuffle = false, plan = false, devinfo = false, json = false;
  int64_t warmup = 0, schedule_steps = 0, step_size = 1;
  std::vector<std::string> trainable, frozen;
  LoopOptions loop;
  EngineOptions engine;

  // Throws UsageError.
  TrainingOptions training() const;
};

void add_train_options(Arguments arguments, TrainCommandOptions& options);

}  // namespace plimsoll::cli
