// The executor: walks the steps of a program.
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "plimsoll/run_options.h"
#include "prepare/program.h"
#include "runtime/dynamic_memory.h"
#include "runtime/trace.h"

namespace plimsoll {

// Time by node, summed over runs.
struct Profile {
  struct Entry {
    const Node* node = nullptr;
    int64_t count = 0;
    int64_t nanoseconds = 0;
    int64_t operations = 0;
    int64_t bytes = 0;
  };
  std::vector<Entry> entries;  // by node id
};

// Throws kCancelled or kDeadlineExceeded.
void check_stop(const RunOptions& options);

// One run. Not thread-safe; programs are shared, frames are not.
class Executor {
 public:
  struct Context {
    int threads = 1;
    const RunOptions* options = nullptr;
    DynamicMemory* dynamic = nullptr;
    Budget* budget = nullptr;
    Profile* profile = nullptr;  // null: off
    Trace* trace = nullptr;      // likewise
    bool poison = false;
    uint64_t random_seed = 0;
    uint64_t run_number = 0;  // of the session, from 1
  };
  explicit Executor(const Context& context) : context_(context) {}

  // Runs a frame's program in `arena`; constants of the frame are bound. `outputs` are the memory of outputs
  // of known shape; afterwards the values of the others are in frame.values. `outer` is the enclosing frame
  // of a body.
  void run(Frame& frame, std::byte* arena, std::span<const TensorView> inputs,
           std::span<const TensorView> outputs, const Frame* outer = nullptr);

 private:
  void bind(Frame& frame, std::byte* arena, std::span<const TensorView> inputs,
            std::span<const TensorView> outputs, const Frame* outer);
  void check_stop() const { plimsoll::check_stop(*context_.options); }
  void run_step(Frame& frame, const Step& step, std::byte* arena);
  void run_node(Frame& frame, const Step& step, std::byte* arena);
  void add_to_trace(const Frame& frame, const Step& step, Trace::Clock::time_point start) const;
  void run_dynamic(Frame& frame, const Step& step);
  void run_values(Frame& frame, const Step& step);
  void refresh_arguments(Frame& frame, const Step& step);
  void poison_dead(const Program& program, size_t step, size_t& next, std::byte* arena);
  friend class FrameBodyRun;  // control_flow.cpp
  void run_bodies(Frame& frame, const Step& step, std::byte* arena);

  Context context_;
};

}  // namespace plimsoll
