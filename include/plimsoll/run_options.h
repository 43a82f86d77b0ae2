// RunOptions: how one run may end early, and what it leaves out.
//
// A handle; copies share the terminate flag. SetTerminate may be called from any thread while a run
// is under way; everything else belongs to the thread that prepares the run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace plimsoll {

class RunOptions {
 public:
  RunOptions() = default;
  explicit RunOptions(std::nullptr_t) {}

  // The run stops before its next operator with kCancelled.
  RunOptions& SetTerminate() {
    terminate_->store(true);
    return *this;
  }
  RunOptions& UnsetTerminate() {
    terminate_->store(false);
    return *this;
  }
  // The run stops before its next operator with kDeadlineExceeded once `deadline` has passed.
  RunOptions& SetDeadline(std::chrono::steady_clock::time_point deadline) {
    deadline_ = deadline;
    return *this;
  }
  // A line for this run's own memory (planned, dynamic, scratch, bound), below the session's; 0: none.
  RunOptions& SetMemoryLimit(int64_t bytes) {
    memory_limit_bytes_ = bytes;
    return *this;
  }
  // Nodes that none of the wanted outputs needs are not run: the shapes are planned a second time, without
  // them (Session::Prepare with names tells what that takes). Otherwise every node runs.
  RunOptions& SetOnlyExecutePathToFetches(bool on) {
    only_execute_path_to_fetches_ = on;
    return *this;
  }
  // Wholly free regions of the arena, and the planned memory, go back to the operating system after the run.
  RunOptions& SetShrinkArena(bool on) {
    shrink_arena_ = on;
    return *this;
  }
  // What random operators draw from in this run, beside the session's seed: two runs with the same draw the
  // same. Otherwise the number of the run.
  RunOptions& SetRandomSeed(uint64_t seed) {
    random_seed_ = seed;
    return *this;
  }
  // ONNX Runtime's keys (plimsoll/config_keys.h). Throws as SessionOptions::AddConfigEntry does.
  RunOptions& AddConfigEntry(const std::string& key, const std::string& value);
  const std::map<std::string, std::string>& config_entries() const { return config_entries_; }
  // Kept, and put into the profile.
  RunOptions& SetRunTag(const std::string& tag) {
    run_tag_ = tag;
    return *this;
  }
  const std::string& GetRunTag() const { return run_tag_; }
  // Kept: nothing is logged.
  RunOptions& SetRunLogSeverityLevel(int level) {
    log_severity_level_ = level;
    return *this;
  }
  int GetRunLogSeverityLevel() const { return log_severity_level_; }
  RunOptions& SetRunLogVerbosityLevel(int level) {
    log_verbosity_level_ = level;
    return *this;
  }
  int GetRunLogVerbosityLevel() const { return log_verbosity_level_; }

  // Asked before every operator, on the thread of the run: true stops it with kCancelled.
  RunOptions& SetInterruptCheck(std::function<bool()> interrupted) {
    interrupted_ = std::move(interrupted);
    return *this;
  }

  bool interrupted() const { return interrupted_ && interrupted_(); }
  bool terminate() const { return terminate_->load(std::memory_order_relaxed); }
  std::optional<std::chrono::steady_clock::time_point> deadline() const { return deadline_; }
  int64_t memory_limit_bytes() const { return memory_limit_bytes_; }
  bool only_execute_path_to_fetches() const { return only_execute_path_to_fetches_; }
  bool shrink_arena() const { return shrink_arena_; }
  std::optional<uint64_t> random_seed() const { return random_seed_; }

 private:
  std::shared_ptr<std::atomic<bool>> terminate_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::optional<uint64_t> random_seed_;
  int64_t memory_limit_bytes_ = 0;
  bool only_execute_path_to_fetches_ = false;
  bool shrink_arena_ = false;
  int log_severity_level_ = -1, log_verbosity_level_ = 0;
  std::string run_tag_;
  std::map<std::string, std::string> config_entries_;
  std::function<bool()> interrupted_;
};

}  // namespace plimsoll
