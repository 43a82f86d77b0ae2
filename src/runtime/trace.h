// A Chrome trace of a session, event by event into a file, with ONNX Runtime's names for the fields.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "memory/budget.h"
#include "prepare/program.h"

namespace plimsoll {

// Any thread. Events wait in a buffer that is charged to `session`, and is written whenever it is full.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Opens PREFIX_DATE_TIME.json, numbered if there is one. Throws kIo.
  Trace(const std::string& prefix, Budget& session);
  Trace(const Trace&) = delete;
  ~Trace();

  void add_session_event(const char* name, Clock::time_point start, const std::string& run_tag = {});
  // One run of a node: its views as they were afterwards. `threads` is what it could use.
  void add_node(const Step& step, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                std::span<const bool> constant_inputs, Clock::time_point start, Clock::time_point end,
                int threads);
  // Ends the file and names it; "" the second time. Throws kIo, and removes the file, if anything of it could
  // not be written.
  std::string finish();
  Clock::time_point start() const { return start_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void add(const std::string& event);
  void write();

  const Clock::time_point start_ = Clock::now();
  Budget& session_;
  Charge charge_;
  std::mutex mutex_;
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::string buffer_;
  bool empty_ = true;
  int error_ = 0;  // the first
};

}  // namespace plimsoll
