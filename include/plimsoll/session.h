// Session: a model ready to run inside its budget.
//
// Owns the weights, the prepared shapes and the arenas. Movable. Run may be called from many threads
// at once; up to max_concurrent_runs proceed together. Memory is taken in the constructor (weights),
// in Prepare or the first Run of a shape (its plan and arena), and in a Run for outputs that are not
// bound and for values whose shape depends on data. A Run of a prepared shape with bound inputs and
// outputs makes no heap call, and takes no memory once an earlier run has mapped the arena.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/env.h"
#include "plimsoll/error.h"
#include "plimsoll/io_binding.h"
#include "plimsoll/memory_report.h"
#include "plimsoll/model.h"
#include "plimsoll/plan.h"
#include "plimsoll/run_options.h"
#include "plimsoll/session_options.h"
#include "plimsoll/value.h"

namespace plimsoll {

// Told the inputs of a model, gives the shapes that the first runs will have.
using ShapesForInputs = std::function<Shapes(const std::vector<ValueInfo>& inputs)>;

class Session {
 public:
  // Throws kIo, kInvalidModel, kNotImplemented, kBudgetExceeded; nothing is left behind. Shapes that the
  // model fixes, or that `shapes` gives, are planned before the weights are touched: what cannot fit is
  // refused then.
  Session(const Env& env, const std::string& path, const SessionOptions& options = {},
          const ShapesForInputs& shapes = {});
  // From bytes that the caller keeps until the Session is destroyed.
  Session(const Env& env, const void* model, size_t size, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Outputs belong to the caller.
  std::vector<Value> Run(const RunOptions& options, const char* const* input_names, const Value* inputs,
                         size_t input_count, const char* const* output_names, size_t output_count);
  std::vector<Value> Run(const RunOptions& options, const std::vector<std::string>& input_names,
                         const std::vector<Value>& inputs, const std::vector<std::string>& output_names);
  void Run(const RunOptions& options, IoBinding& binding);

  // Plans, places and binds ahead for these shapes; a Run of them then only maps its arena.
  Plan Prepare(const Shapes& shapes);

  const std::vector<ValueInfo>& GetInputs() const;
  const std::vector<ValueInfo>& GetOutputs() const;
  // Inputs of the file that are also initializers. Run takes them among its inputs too; an IoBinding, and a
  // plan told ahead, need them named in SessionOptions::overridden_initializers. Otherwise the first run that
  // gives one prepares the model a second time, weights and all, inside the same limit.
  const std::vector<ValueInfo>& GetOverridableInitializers() const;
  // What ONNX forbids and was let pass (SessionOptions::strict).
  std::vector<std::string> GetWarnings() const;
  MemoryReport GetMemoryReport() const;
  // Gives the arenas of idle runs back to the operating system; the next run maps them again.
  void ReleaseMemory();
  // Nodes and their time, summed over the runs since profiling was turned on.
  struct ProfileEntry {
    std::string node, op;
    int64_t count = 0;
    double total_ms = 0;
    int64_t operations = 0;  // arithmetic, summed likewise; one per element where the operator tells none
    int64_t bytes = 0;       // that its inputs and outputs have, summed likewise
  };
  void EnableProfiling(bool on);
  std::vector<ProfileEntry> GetProfile() const;

  struct Impl;

 private:
  friend class IoBinding;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
