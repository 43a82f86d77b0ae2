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

namespace cxx_api {
class TypeInfo;  // plimsoll/cxx_api.h
}

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
  Session(const Env& env, const void* model, size_t size, const SessionOptions& options = {},
          const ShapesForInputs& shapes = {});
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);  // what OpenGradientSessions makes (plimsoll/gradient.h)
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Outputs belong to the caller. They may be any of the model's, in any order; of a name that comes twice
  // both Values share their bytes. Nothing of a run is kept.
  std::vector<Value> Run(const RunOptions& options, const char* const* input_names, const Value* inputs,
                         size_t input_count, const char* const* output_names, size_t output_count);
  std::vector<Value> Run(const RunOptions& options, const std::vector<std::string>& input_names,
                         const std::vector<Value>& inputs, const std::vector<std::string>& output_names);
  // Values that are not empty are written in place, the others are made.
  void Run(const RunOptions& options, const char* const* input_names, const Value* inputs, size_t input_count,
           const char* const* output_names, Value* outputs, size_t output_count);
  // Throws kInvalidArgument of a binding of another session.
  void Run(const RunOptions& options, IoBinding& binding);

  // Plans, places and binds ahead for these shapes; a Run of them then only maps its arena.
  Plan Prepare(const Shapes& shapes);
  // The same without keeping anything, and with the formula; the formula alone if some shape is missing.
  Plan MakePlan(const Shapes& shapes = {}) const;
  // As Prepare, for runs that want only these outputs and have SetOnlyExecutePathToFetches.
  Plan Prepare(const Shapes& shapes, const std::vector<std::string>& outputs);

  const std::vector<ValueInfo>& GetInputs() const;
  const std::vector<ValueInfo>& GetOutputs() const;
  // Inputs of the file that are also initializers. Run takes them among its inputs too; an IoBinding, and a
  // plan told ahead, need them named in SessionOptions::overridden_initializers. Otherwise the first run that
  // gives one prepares the model a second time, weights and all, inside the same limit.
  const std::vector<ValueInfo>& GetOverridableInitializers() const;
  const ModelMetadata& GetModelMetadata() const;
  // What ONNX forbids and was let pass (SessionOptions::strict), and config keys that nobody knows.
  std::vector<std::string> GetWarnings() const;
  MemoryReport GetMemoryReport() const;
  // Of the arena for what is not planned: this session's or the Env's. All zero if it has none.
  ArenaStats GetArenaStats() const;
  // Gives the arenas of idle runs back to the operating system; the next run maps them again. Of the arena
  // for what is not planned, the regions in which nothing is in use.
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
  // Ends the trace that SessionOptions::EnableProfiling began, and names its file: "" if there is none, or it
  // has ended before. Throws kIo if it could not be written.
  std::string EndProfiling();
  AllocatedStringPtr EndProfilingAllocated(const Allocator& allocator) {
    return allocate_text(EndProfiling(), allocator);
  }
  // When the trace began, in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
  uint64_t GetProfilingStartTimeNs() const;

  // ONNX Runtime's names.
  size_t GetInputCount() const { return GetInputs().size(); }
  size_t GetOutputCount() const { return GetOutputs().size(); }
  size_t GetOverridableInitializerCount() const { return GetOverridableInitializers().size(); }
  std::vector<std::string> GetInputNames() const;
  std::vector<std::string> GetOutputNames() const;
  // Throw kInvalidArgument if there is no such number.
  AllocatedStringPtr GetInputNameAllocated(size_t index, const Allocator& allocator) const;
  AllocatedStringPtr GetOutputNameAllocated(size_t index, const Allocator& allocator) const;
  AllocatedStringPtr GetOverridableInitializerNameAllocated(size_t index, const Allocator& allocator) const;
  cxx_api::TypeInfo GetInputTypeInfo(size_t index) const;  // with plimsoll/cxx_api.h
  cxx_api::TypeInfo GetOutputTypeInfo(size_t index) const;
  cxx_api::TypeInfo GetOverridableInitializerTypeInfo(size_t index) const;

 private:
  friend class IoBinding;
  friend class Allocator;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
