#include "solve.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include "interrupt.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

constexpr int64_t kLargest = int64_t{1} << 30;

// Plans the model at one size of the symbol after the other.
class Trial {
 public:
  Trial(const Model& model, Inputs inputs, const std::string& symbol, int64_t limit_bytes)
      : model_(model), inputs_(std::move(inputs)), symbol_(symbol), limit_bytes_(limit_bytes) {}

  // What a size needs; throws what planning throws.
  Plan plan(int64_t size) {
    inputs_.set_dim(symbol_, size);
    return model_.MakePlan(inputs_.complete_shapes(model_.GetInfo().inputs), true);
  }
  // Where shapes depend on data, what is known of it.
  static int64_t needed(const Plan& plan) {
    return plan.depends_on_data ? plan.peak_bytes : plan.minimum_limit_bytes;
  }
  // A size that the model itself refuses (not a multiple of its stride, overflowing) does not fit either.
  bool fits(int64_t size) {
    check_interrupted();
    try {
      return needed(plan(size)) <= limit_bytes_;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kInvalidModel)
        return false;
      throw;
    }
  }

 private:
  const Model& model_;
  Inputs inputs_;
  const std::string& symbol_;
  int64_t limit_bytes_;
};

}  // namespace

int64_t largest_dim(const Model& model, Inputs inputs, const std::string& symbol, int64_t limit_bytes) {
  Trial trial(model, std::move(inputs), symbol, limit_bytes);
  const Plan smallest = trial.plan(1);
  if (Trial::needed(smallest) > limit_bytes)
    throw Error(ErrorCode::kBudgetExceeded,
                fmt::format("not even {}=1 fits {} bytes: it needs {}", symbol, grouped(limit_bytes),
                            grouped(Trial::needed(smallest))));
  int64_t fits = 1, too_large = 2;
  while (too_large <= kLargest && trial.fits(too_large)) fits = too_large, too_large *= 2;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (trial.fits(middle) ? fits : too_large) = middle;
  }
  return fits;
}

}  // namespace plimsoll::cli
