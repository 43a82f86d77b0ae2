// SessionOptions: plain settings of one Session, with ONNX Runtime's spellings as setters.
//
// A value type; copy it freely. A Session keeps its own copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/custom_op.h"

namespace plimsoll {

enum class GraphOptimizationLevel { kDisableAll, kBasic, kExtended, kAll };
enum class Placer { kGreedy, kNaive };
enum class BusyPolicy { kWait, kError };

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
  bool poison = false;       // fill arenas with NaN before use and values with NaN after their last use
  bool guard_pages = false;  // an inaccessible page behind every arena
  // What random operators without a seed of their own draw from: the n-th run of two sessions with the same
  // number draws the same. 0: another one for every session.
  uint64_t random_seed = 0;

  SessionOptions& RegisterCustomOpsLibrary(const std::string& path) {
    custom_ops_libraries.push_back(path);
    return *this;
  }
  SessionOptions& SetIntraOpNumThreads(int threads) {
    intra_op_threads = threads;
    return *this;
  }
  SessionOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level) {
    optimization_level = level;
    return *this;
  }
  SessionOptions& SetMemoryLimit(int64_t bytes) {
    memory_limit_bytes = bytes;
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
};

}  // namespace plimsoll
