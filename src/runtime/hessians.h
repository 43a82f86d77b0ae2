// What GPTQ asks of calibration: for the input x of a product, the sum of x^T * x over all samples.
#pragma once

#include "plimsoll/quantize.h"
#include "quantize/calibration.h"
#include "runtime/sample_pass.h"

namespace plimsoll {

// Samples of which the first can be had again without going back to the beginning: what a plan looks at is
// not lost for the run after it.
class FirstSampleKept : public CalibrationReader {
 public:
  explicit FirstSampleKept(CalibrationReader& reader) : reader_(reader) {}
  bool Next(std::map<std::string, Value>& inputs) override;
  bool Rewind() override;

 private:
  CalibrationReader& reader_;
  std::map<std::string, Value> first_;
  int64_t taken_ = 0;
  bool has_first_ = false, again_ = false;
};

class Hessians {
 public:
  struct Input {
    std::string name;
    int64_t k = 0;  // the size of its last axis
  };
  // The inputs in the order in which they will be asked for. As many as the limit leaves room for are summed
  // up in one pass over the samples, and no more than are within `room` bytes beyond the first; one takes
  // 12 * k * k bytes, and a third of that beside the model while it runs. All of it is charged to `budget`,
  // which must outlive this. One that plans runs nothing: it charges what the passes would take.
  Hessians(const Env& env, const std::string& model, const QuantizeOptions& options,
           std::vector<Input> inputs, Budget& budget, int64_t room, bool plans);

  // Inverted and factored as gptq_round wants it; empty if there is no such input, and of a plan. Valid until
  // the next call. Throws kBudgetExceeded.
  std::span<const double> factor(std::string_view name);
  int64_t samples() const { return samples_; }
  int64_t told_bytes() const { return told_; }
  int64_t peak_bytes() const { return peak_; }

 private:
  struct Sum {
    const Input* input = nullptr;
    std::vector<double> h;
    bool is_factored = false;
  };
  void collect(size_t first);
  void begin();
  SamplePassOptions pass_options(int64_t limit, std::vector<ObservedProduct> products) const;
  void run_pass(int64_t limit);
  void plan_pass(int64_t limit);
  int64_t held_bytes() const;

  const Env& env_;
  std::string model_;
  const QuantizeOptions& options_;
  std::vector<Input> inputs_;
  Budget& budget_;
  int64_t room_;
  bool plans_;
  Charge charge_;
  std::vector<Sum> sums_;
  int64_t samples_ = 0, told_ = 0, peak_ = 0;
  bool has_begun_ = false;
};

}  // namespace plimsoll
