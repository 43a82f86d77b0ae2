// What GPTQ asks of calibration: for the input x of a product, the sum of x^T * x over all samples.
#pragma once

#include "plimsoll/quantize.h"
#include "quantize/calibration.h"
#include "runtime/sample_pass.h"

namespace plimsoll {

class Hessians {
 public:
  struct Input {
    std::string name;
    int64_t k = 0;  // the size of its last axis
  };
  // The inputs in the order in which they will be asked for. As many as the limit leaves room for are summed
  // up in one pass over the samples; one takes 12 * k * k bytes, and a third of that beside the model while
  // it runs. All of it is charged to `budget`, which must outlive this.
  Hessians(const Env& env, const std::string& model, const QuantizeOptions& options,
           std::vector<Input> inputs, Budget& budget);

  // Inverted and factored as gptq_round wants it; empty if there is no such input. Valid until the next call.
  // Throws kBudgetExceeded naming the smallest limit that would do.
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
  void collect(size_t first, int64_t room);
  void begin();
  SamplePassOptions pass_options(int64_t limit, std::vector<ObservedProduct> products) const;
  void run_pass(int64_t limit);
  int64_t smallest_limit_bytes();
  int64_t held_bytes() const;

  const Env& env_;
  std::string model_;
  const QuantizeOptions& options_;
  std::vector<Input> inputs_;
  Budget& budget_;
  Charge charge_;
  std::vector<Sum> sums_;
  int64_t samples_ = 0, told_ = 0, peak_ = 0;
  bool has_begun_ = false;
};

}  // namespace plimsoll
