// What is behind a Session.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/session.h"
#include "prepare/shape_plan.h"
#include "runtime/declared_shapes.h"
#include "runtime/describe.h"
#include "runtime/env_impl.h"
#include "runtime/executor.h"
#include "runtime/save.h"
#include "runtime/trace.h"
#include "runtime/value_impl.h"

namespace plimsoll {

// Memory of one of the concurrent runs. The vectors keep their storage between runs.
struct RunSlot {
  size_t index = 0;
  Arena planned;
  std::vector<TensorView> inputs, outputs;

  void release() { planned = Arena(); }
};

// A prepared shape and when it was last asked for.
struct CachedPlan : ShapePlan {
  using ShapePlan::ShapePlan;
  std::atomic<uint64_t> last_use{0};
};

// A shared_ptr that threads read while one replaces it. std::atomic<std::shared_ptr> has such a lock inside,
// which GCC 12's load() releases without ordering: a data race, says the thread sanitizer.
template <typename T>
class SharedCell {
 public:
  std::shared_ptr<T> load() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void store(std::shared_ptr<T> value) {
    const std::lock_guard lock(mutex_);
    value_.swap(value);  // what was there dies with `value`, after the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<T> value_;
};

// Training: what is done to the graph, and what the runs of the first shapes will want, each of which is
// planned before the weights are loaded and kept.
struct SessionRewrite {
  std::function<void(Graph&)> graph, finish;  // see PrepareOptions: rewrite, finish
  std::function<std::vector<ShapePlan::Wanted>(const Graph&)> runs;
  MemoryConfig memory_config;                  // see PrepareOptions
  bool recompute = true;                       // nodes may run again where the limit is too small otherwise
  std::function<Shapes(const Graph&)> shapes;  // instead of the caller's; may be left out
  std::function<void(std::span<const std::byte>)> drop_pages;  // see PrepareOptions
};

struct Session::Impl {
  using Rewrite = SessionRewrite;
  using Wanted = ShapePlan::Wanted;

  Impl(const Env& env, const ModelLocation& location, const SessionOptions& options,
       const ShapesForInputs& shapes, const Rewrite& rewrite = {});
  ~Impl();

  // Values for the inputs and outputs of one run, in the graph's order. An output that is empty is
  // made by the run and left there. With `wanted`, only these outputs are there.
  struct Io {
    std::span<const Value> inputs;
    std::span<Value> outputs;
    const Wanted* wanted = nullptr;
    std::optional<uint64_t> counter = {};  // for random numbers, instead of the number of runs so far
  };
  void run(const RunOptions& options, const Io& io);
  // A run that wants some outputs, by number: `values` has one for each, empty if it is to be made.
  void run_some(const RunOptions& options, std::span<const Value> given, std::span<const size_t> numbers,
                std::span<Value> values);

  std::shared_ptr<ShapePlan> prepare(const std::vector<std::vector<int64_t>>& shapes, const Wanted& wanted);
  // The preparation that a run with these inputs needs: this one, or, if they override initializers that are
  // constants here, another, made when first needed and kept.
  std::shared_ptr<Impl> overriding(std::span<const char* const> input_names);
  // The same for inputs whose shapes contradict what the model declares (DeclaredShapes): null if they do
  // not, or where that is an Error.
  std::shared_ptr<Impl> loosened(const DeclaredShapes::ShapeOf& shape_of);
  std::shared_ptr<Impl> loosened(std::span<const Value> values);
  // Puts what stands for inputs that are not given into their places.
  void fill_defaults(std::span<Value> values) const;
  size_t input_index(std::string_view name) const;  // throws kInvalidArgument
  size_t output_index(std::string_view name) const;
  void release_memory();
  void release_idle_regions();  // after a run, as ONNX Runtime's arenas shrink

  std::shared_ptr<Env::Impl> env;
  LiveSession live;  // before the weights are packed
  SessionOptions options;
  Budget budget;
  std::unique_ptr<PreparedModel> model;
  ModelMetadata metadata;
  std::shared_ptr<BlockArena> arena;  // for what is not planned; null: from the operating system
  std::shared_ptr<Trace> trace;       // null: no profiling into a file
  std::vector<std::string> warnings() const;
  std::vector<ValueInfo> inputs, outputs, overridable;
  void enable_profiling(bool on);
  Profile profile() const;  // a copy

 private:
  using PlanTable = std::vector<std::shared_ptr<CachedPlan>>;
  class Slot;
  Impl(Impl& base, const SessionOptions& options, const LoadOptions::Loose& loose);
  void initialize(const ShapesForInputs& shapes, const Rewrite& rewrite);
  // Prepares the model and plans the shape that is known at opening: nothing if none is.
  std::vector<std::shared_ptr<CachedPlan>> prepare_model(const ShapesForInputs& shapes,
                                                         const Rewrite& rewrite);
  std::vector<std::shared_ptr<CachedPlan>> first_plans(const ShapesForInputs& shapes, const Rewrite& rewrite);
  void choose_arena();
  std::shared_ptr<Impl> open_overriding(std::span<const char* const> names);
  // A second preparation beside this one, inside the same limit.
  std::shared_ptr<Impl> open_beside(SessionOptions more, const LoadOptions::Loose& loose);
  bool may_loosen() const;
  void make_defaults();
  void forget_overriding();
  std::shared_ptr<ShapePlan> find_plan(const std::vector<std::vector<int64_t>>& shapes,
                                       const Wanted& wanted) const;
  std::shared_ptr<ShapePlan> plan_for(std::span<const Value> values, const Wanted& wanted);
  const std::vector<int64_t>& planned_shape(size_t input, const Value& value) const;
  void check_inputs(std::span<const Value> values) const;
  std::shared_ptr<CachedPlan> make_plan(const std::vector<std::vector<int64_t>>& shapes,
                                        const Wanted& wanted);
  void remember(const std::shared_ptr<CachedPlan>& plan);
  void forget_plans_but(const ShapePlan* plan);
  void evict(PlanTable& table, const CachedPlan& keep) const;
  void map_arena(RunSlot& slot, const ShapePlan& plan);
  Charge take_memory(RunSlot& slot, const std::shared_ptr<ShapePlan>& plan, Budget& run_budget,
                     int64_t bound_bytes);
  // What outputs of known shape that nobody bound take of the arena.
  int64_t pooled_output_bytes(const ShapePlan& plan, std::span<const Value> values) const;
  const std::string& output_name(const ShapePlan& plan, size_t output) const;
  void add_to_profile(const Profile& run);
  void make_outputs(const ShapePlan& plan, std::span<Value> values, std::vector<TensorView>& views);
  // `bound` grows by what is made here.
  void finish_outputs(const ShapePlan& plan, const Frame& frame, std::span<Value> values, Charge& bound);

  ModelLocation location_;
  std::vector<Value> defaults_;  // by input; none if no input has one
  DeclaredShapes declared_;
  mutable std::mutex overriding_mutex_;
  std::shared_ptr<Impl> overriding_, loosened_;
  std::mutex prepare_mutex_;
  // Replaced as a whole, so that readers hold no lock while they search.
  SharedCell<const PlanTable> plans_;
  mutable std::atomic<uint64_t> uses_{0};
  uint64_t random_seed_ = 0;
  std::atomic<uint64_t> runs_{0};  // runs begun: each draws other random numbers
  std::atomic<bool> profiling_{false};
  Profile profile_;  // guarded by slots_mutex_
  mutable std::mutex slots_mutex_;
  std::condition_variable slot_free_;
  std::vector<std::unique_ptr<RunSlot>> idle_;
  IdleMemory::Entry idle_entry_;
  bool has_idle_entry_ = false;
  bool owns_arena_ = false;
};

struct IoBinding::Impl {
  Session::Impl* session = nullptr;
  std::vector<Value> inputs;   // by input
  std::vector<size_t> order;   // outputs in the order of binding
  std::vector<Value> bound;    // by output; empty: made by each run
  std::vector<Value> results;  // by output, of the last run
};

}  // namespace plimsoll
