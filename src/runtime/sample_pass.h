// One pass over samples with a graph that tells numbers about each of them.
#pragma once

#include <functional>
#include <memory>

#include "plimsoll/quantize.h"
#include "runtime/session_impl.h"

namespace plimsoll {

struct SamplePassOptions {
  CalibrationReader* reader = nullptr;
  std::string subject = "calibration";  // for Errors
  std::string stage = "sample";         // for progress
  std::function<void(const std::string& stage, int64_t done, int64_t all)> progress;
  int64_t memory_limit_bytes = 0;
  int threads = 0;
  GraphOptimizationLevel level = GraphOptimizationLevel::kBasic;
  // Changes the graph as it was read, functions inlined; and after inference. Either may be left out.
  std::function<void(Graph&)> rewrite, rewrite_inferred;
  std::function<void(std::span<const std::byte>)> drop_pages;  // see PrepareOptions
};

class SamplePass {
 public:
  SamplePass(const Env& env, const std::string& model, SamplePassOptions options);

  // Calls f(outputs, number of the sample) for each sample; returns how many there were. Throws
  // kInvalidArgument of a sample that does not fit the model, kBudgetExceeded before anything runs.
  int64_t each(const std::function<void(const std::vector<Value>&, int64_t)>& f);
  // What the next sample would take, and the smallest limit that would do for it; takes it from the reader,
  // and runs nothing. Nothing if there is no sample.
  struct Needs {
    int64_t peak_bytes = 0, smallest_limit_bytes = 0;
  };
  Needs needs() const;
  // For the first sample, before it ran; and what was taken.
  int64_t told_bytes() const { return told_; }
  int64_t peak_bytes() const { return session_ ? session_->budget.report().peak_bytes : 0; }

 private:
  void open(const std::map<std::string, Value>& sample);
  SessionOptions session_options() const;
  ModelLocation location() const;
  bool next(std::map<std::string, Value>& sample, int64_t number) const;
  std::vector<Value> run(const std::map<std::string, Value>& sample, int64_t number);
  void tell(const std::vector<Value>& inputs);

  const Env& env_;
  std::string model_;
  SamplePassOptions options_;
  std::unique_ptr<Session::Impl> session_;
  int64_t told_ = 0;
};

}  // namespace plimsoll
