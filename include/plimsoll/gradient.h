// A model and its gradients in two sessions, for programs that have an autograd of their own and do something
// between the two: PyTorch's, foremost (plimsoll.training.ortmodule).
//
// The forward session makes the model's outputs, and leaves what the other needs as further outputs. The
// backward session takes those, the inputs that it reads, and gradients of the outputs, and makes gradients
// of inputs. Both are ordinary sessions; weights are inputs of the model where they are to be trained. For
// the same random numbers in both, give both runs the same RunOptions::SetRandomSeed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/session.h"

namespace plimsoll {

// Of what a step keeps from its forward part for its backward part. Parameters, gradients and moments are
// float with both, and checkpoints the same.
enum class TrainingPrecision : uint8_t {
  kFloat,
  kBFloat16,  // results are rounded where that saves memory; computed with is float
};

struct GradientOptions {
  std::vector<std::string> inputs;  // of floats, whose gradients are wanted; none there: no backward session
  // What runs again in the backward session instead of being left for it: "none", "level1", "level2", the
  // path of a file (docs/recompute.md), or "auto": as ORTMODULE_MEMORY_OPT_LEVEL and
  // ORTMODULE_MEMORY_OPT_CONFIG say.
  std::string recompute = "none";
  TrainingPrecision precision = TrainingPrecision::kFloat;  // of what is left between the two
  SessionOptions session;                                   // free dimensions must be given
};

struct GradientSessions {
  std::unique_ptr<Session> forward, backward;  // no backward where no gradient is wanted
  std::vector<std::string> outputs;            // of the model, the first of `forward`
  std::vector<std::string>
      cotangents;  // by output: the input of `backward` for its gradient; "": it needs none
  std::vector<std::string> gradients;  // by GradientOptions::inputs: the output of `backward`; "": it is zero
  std::vector<std::string>
      stashed;  // outputs of `forward`, the model's own among them, that `backward` takes
  // Running statistics: an input of the model, and the output of `forward` that is its next value.
  std::vector<std::pair<std::string, std::string>> statistics;
  bool draws = false;  // random numbers
  // Of the configuration: clusters that this model does not have.
  std::vector<std::string> unknown_clusters;
  int64_t stashed_bytes = 0;      // between the two
  int64_t all_stashed_bytes = 0;  // if nothing ran again
};

// From bytes that the caller keeps until both sessions are gone. Throws as Session does; kNotImplemented
// naming every node without a gradient.
GradientSessions OpenGradientSessions(const Env& env, const void* model, size_t size,
                                      const GradientOptions& options);

enum class TableDetail : uint8_t {
  kInfo,
  kDevInfo,  // nodes, how often the backward part reads them, bytes
};
// The memory optimizer's table for such a model: symbols are those that the model has, `shapes` say for which
// sizes bytes are told. "Planned Saving(Bytes)" is what less is left between the two with that row alone.
std::string DescribeGradientMemory(const Env& env, const void* model, size_t size,
                                   const GradientOptions& options, const Shapes& shapes, TableDetail detail);

}  // namespace plimsoll
