// SessionOptions: plain settings of one Session, with ONNX Runtime's spellings as setters.
//
// A value type; copy it freely. A Session keeps its own copy, and with it the Values that are named here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plimsoll/allocator.h"
#include "plimsoll/custom_op.h"
#include "plimsoll/memory_limit.h"
#include "plimsoll/value.h"

namespace plimsoll {

enum class GraphOptimizationLevel { kDisableAll, kBasic, kExtended, kAll };
enum class Placer { kGreedy, kNaive };
enum class BusyPolicy { kWait, kError };
// What becomes of a compiled file whose weights were packed by another build or for other instructions.
enum class CompiledMismatch {
  kPackAgain,  // the model that it was made from is opened instead, if it is where it was and as it was
  kRefuse,     // kInvalidModel
};
enum class ExecutionMode { kSequential = 0, kParallel = 1 };
enum class ExecutionOrder { kDefault = 0, kPriorityBased = 1, kMemoryEfficient = 2 };

// A provider that was asked for, with its settings.
struct ProviderEntry {
  std::string name;  // "CPUExecutionProvider"
  std::map<std::string, std::string> options;
};
// Those that this build has: "CPUExecutionProvider".
std::vector<std::string> GetAvailableProviders();
// Those that ONNX Runtime knows, in its order.
std::vector<std::string> GetAllProviders();

struct SessionOptions {
  int intra_op_threads = 0;        // 0: one per CPU this process may use
  int64_t memory_limit_bytes = 0;  // a hard line over all accounts of the session; 0: none
  int max_concurrent_runs = 1;     // k runs at once need k times the planned memory
  BusyPolicy when_busy = BusyPolicy::kWait;
  int64_t plan_cache_bytes = 16 << 20;  // what prepared shapes may take; the least recently used goes first
  GraphOptimizationLevel optimization_level = GraphOptimizationLevel::kAll;
  int stop_after_pass = -1;   // run only the first N passes, to find the one that changes a result; -1: all
  bool check_passes = false;  // prove the model anew after every pass, for tests: an Error names the pass
  bool keep_arena = true;     // false: planned memory goes back to the operating system after every run
  bool read_model_into_memory = false;  // instead of mapping it: immune to truncation of the file
  CompiledMismatch compiled_mismatch = CompiledMismatch::kPackAgain;
  // Refuse what ONNX forbids and other runtimes let pass (kInvalidModel); otherwise GetWarnings() tells it.
  bool strict = false;
  // Inputs that are also initializers, to be planned as inputs: runs that do not give them take the
  // initializer. Others are constants, and a run that gives one prepares the model a second time.
  std::vector<std::string> overridden_initializers;
  // Operators besides ours (plimsoll/custom_op.h): shared libraries, and tables of this very program, which
  // must outlive the Session.
  std::vector<std::string> custom_ops_libraries;
  std::vector<const PlimsollOps*> custom_ops;
  Placer placer = Placer::kGreedy;
  bool mem_reuse = true;     // false: no buffer is used twice, whatever the placer
  bool poison = false;       // fill arenas with NaN before use and values with NaN after their last use
  bool guard_pages = false;  // an inaccessible page behind every arena
  // What random operators without a seed of their own draw from: the n-th run of two sessions with the same
  // number draws the same. 0: another one for every session.
  uint64_t random_seed = 0;

  // An arena for what is not planned; none: straight from the operating system and straight back. Without
  // effect where keep_arena is false, or where the Env's allocator is used.
  std::optional<ArenaCfg> arena;
  bool use_env_allocators = false;  // the arena that is registered with the Env; the session's own if none is

  // Writes a Chrome trace to a file of this name with the time and ".json" behind it, from opening on.
  bool enable_profiling = false;
  std::string profile_file_prefix = "onnxruntime_profile_";
  // Where to write the model after optimization, in ONNX's own operators, before it is loaded; empty:
  // nowhere.
  std::string optimized_model_path;

  // Sizes for dimensions that the model leaves open: by their name, by their denotation.
  std::map<std::string, int64_t> free_dimensions_by_name, free_dimensions_by_denotation;
  // Instead of the initializer of that name, if the model has one, whose type and shape they must have. The
  // bytes are used where they are.
  std::map<std::string, Value> initializers;
  // Likewise for initializers whose data the model has in another file, which is then not opened.
  std::map<std::string, Value> external_initializers;
  // External data files by name, in memory of the caller that outlives the Session.
  std::map<std::string, std::span<const std::byte>> external_files;
  // Where external data files are; empty: beside the model.
  std::string external_data_folder;

  // Nothing depends on these: nodes run one after the other, each on all threads.
  ExecutionMode execution_mode = ExecutionMode::kSequential;
  int inter_op_threads = 0;
  // kMemoryEfficient: every order is tried and the one with the smallest peak taken, not only under a limit.
  ExecutionOrder execution_order = ExecutionOrder::kDefault;
  bool deterministic_compute = false;  // the same bits every time: so it is anyway
  bool denormal_as_zero = false;       // the processor's flush-to-zero and denormals-are-zero during runs
  bool prepack = true;                 // false: weights stay as they are in the file
  // 3x3 convolutions by Winograd's way, large products with constant matrices by Strassen's, where that saves
  // time; it takes more memory for weights and scratch, so not where that would not fit the limit, or where
  // shapes are not known before. Results differ in the sixth digit.
  bool winograd = true;
  // Floats that are multiplied with constant matrices, and convolutions, are rounded to bfloat16 first and
  // summed in float: half the packed bytes, and faster where the processor has instructions for it. Results
  // differ in the third digit. Needs the level kExtended for products, kAll for convolutions.
  bool bfloat16_products = false;
  std::string log_id;
  int log_severity_level = -1;  // of ONNX Runtime, 0 (verbose) to 4 (fatal); -1: the Env's
  int log_verbosity_level = 0;
  std::vector<ProviderEntry> providers;  // none: CPUExecutionProvider
  std::map<std::string, std::string> config_entries;

  // Settings by ONNX Runtime's keys (plimsoll/config_keys.h). Throws kNotImplemented of a key that would
  // change results and is not supported, kInvalidArgument of a value that the key cannot have. A key that
  // nobody knows is kept, and told by Session::GetWarnings().
  SessionOptions& AddConfigEntry(const std::string& key, const std::string& value);
  bool HasConfigEntry(const std::string& key) const { return config_entries.count(key) > 0; }
  std::string GetConfigEntry(const std::string& key) const;  // throws kInvalidArgument
  std::string GetConfigEntryOrDefault(const std::string& key, const std::string& otherwise) const;

  // "CPU" or "CPUExecutionProvider": settings are those of ArenaCfg, and use_arena ("0" or "1"). Throws
  // kInvalidArgument of a name that nobody knows, kNotImplemented of a provider that is not in this build.
  SessionOptions& AppendExecutionProvider(const std::string& name,
                                          const std::map<std::string, std::string>& settings = {});
  // The same with settings in another kind of map.
  template <typename Settings>
  requires(!std::is_same_v<Settings, std::map<std::string, std::string>>)
      SessionOptions& AppendExecutionProvider(const std::string& name, const Settings& settings) {
    return AppendExecutionProvider(name,
                                   std::map<std::string, std::string>(settings.begin(), settings.end()));
  }
  bool HasProviders() const { return !providers.empty(); }

  SessionOptions& AddFreeDimensionOverrideByName(const std::string& name, int64_t size);  // throws
  SessionOptions& AddFreeDimensionOverride(const std::string& denotation, int64_t size);  // likewise
  SessionOptions& AddInitializer(const std::string& name, const Value& value);
  SessionOptions& AddExternalInitializers(const std::vector<std::string>& names,
                                          const std::vector<Value>& values);
  SessionOptions& AddExternalInitializersFromFilesInMemory(const std::vector<std::string>& file_names,
                                                           const std::vector<char*>& buffers,
                                                           const std::vector<size_t>& lengths);

  SessionOptions& RegisterCustomOpsLibrary(const std::string& path) {
    custom_ops_libraries.push_back(path);
    return *this;
  }
  SessionOptions& SetIntraOpNumThreads(int threads) {
    intra_op_threads = threads;
    return *this;
  }
  SessionOptions& SetInterOpNumThreads(int threads) {
    inter_op_threads = threads;
    return *this;
  }
  SessionOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level) {
    optimization_level = level;
    return *this;
  }
  // ONNX Runtime's enumeration, by its numbers: 0, 1, 2, 3 (layout), 99 (all).
  template <typename Level>
  requires(std::is_enum_v<Level>) SessionOptions& SetGraphOptimizationLevel(Level level) {
    optimization_level = static_cast<GraphOptimizationLevel>(level > 3 ? 3 : static_cast<int>(level));
    return *this;
  }
  template <typename Mode>
  requires(std::is_enum_v<Mode>) SessionOptions& SetExecutionMode(Mode mode) {
    execution_mode = static_cast<ExecutionMode>(mode);
    return *this;
  }
  SessionOptions& SetExecutionOrder(ExecutionOrder order) {
    execution_order = order;
    return *this;
  }
  SessionOptions& SetMemoryLimit(int64_t bytes) {
    memory_limit_bytes = bytes;
    return *this;
  }
  // "512MiB", or "container": what the cgroup's limit leaves this process.
  SessionOptions& SetMemoryLimit(const std::string& text) {
    memory_limit_bytes = ParseMemoryLimit(text);
    return *this;
  }
  SessionOptions& SetMaxConcurrentRuns(int runs) {
    max_concurrent_runs = runs;
    return *this;
  }
  SessionOptions& EnableCpuMemArena() {
    keep_arena = true;
    return *this;
  }
  SessionOptions& DisableCpuMemArena() {
    keep_arena = false;
    return *this;
  }
  SessionOptions& EnableMemPattern() {
    placer = Placer::kGreedy;
    return *this;
  }
  SessionOptions& DisableMemPattern() {
    placer = Placer::kNaive;
    return *this;
  }
  SessionOptions& EnableMemReuse() {
    mem_reuse = true;
    return *this;
  }
  SessionOptions& DisableMemReuse() {
    mem_reuse = false;
    return *this;
  }
  SessionOptions& SetArena(const ArenaCfg& settings) {
    arena = settings;
    return *this;
  }
  SessionOptions& EnableProfiling(const std::string& prefix) {
    enable_profiling = true;
    profile_file_prefix = prefix;
    return *this;
  }
  SessionOptions& DisableProfiling() {
    enable_profiling = false;
    return *this;
  }
  SessionOptions& SetOptimizedModelFilePath(const std::string& path) {
    optimized_model_path = path;
    return *this;
  }
  SessionOptions& SetLogId(const std::string& id) {
    log_id = id;
    return *this;
  }
  SessionOptions& SetLogSeverityLevel(int level) {
    log_severity_level = level;
    return *this;
  }
  SessionOptions& SetDeterministicCompute(bool on) {
    deterministic_compute = on;
    return *this;
  }
};

}  // namespace plimsoll
