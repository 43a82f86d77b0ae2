#include "runtime/hessians.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "quantize/gptq.h"

namespace plimsoll {
namespace {

constexpr int64_t kSumBytes = 8, kRunBytes = 4;  // of an element: here, and of what a run makes

int64_t square(const Hessians::Input& input) {
  return checked_mul(input.k, input.k);
}

}  // namespace

bool FirstSampleKept::Next(std::map<std::string, Value>& inputs) {
  if (again_) {
    again_ = false;
    inputs = first_;
    return has_first_;
  }
  const bool found = reader_.Next(inputs);
  first_.clear();
  if (taken_++ > 0) return found;
  has_first_ = found;
  if (found) first_ = inputs;
  return found;
}

bool FirstSampleKept::Rewind() {
  if (taken_ <= 1) {
    again_ = taken_ == 1;
    return true;
  }
  taken_ = 0;
  return reader_.Rewind();
}

Hessians::Hessians(const Env& env, const std::string& model, const QuantizeOptions& options,
                   std::vector<Input> inputs, Budget& budget, int64_t room, bool plans)
    : env_(env),
      model_(model),
      options_(options),
      inputs_(std::move(inputs)),
      budget_(budget),
      room_(room),
      plans_(plans) {
  if (options.calibration == nullptr) fail(ErrorCode::kInvalidArgument, "GPTQ: expected samples, found none");
  if (!(options.gptq_damping > 0) || !std::isfinite(options.gptq_damping))
    fail(ErrorCode::kInvalidArgument, "GPTQ: expected a damping above 0, found {}", options.gptq_damping);
}

std::span<const double> Hessians::factor(std::string_view name) {
  const auto is_it = [&](const Sum& sum) { return sum.input->name == name; };
  auto found = std::find_if(sums_.begin(), sums_.end(), is_it);
  if (found == sums_.end()) {
    const auto wanted =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.name == name; });
    if (wanted == inputs_.end()) return {};
    collect(static_cast<size_t>(wanted - inputs_.begin()));
    found = sums_.begin();
  }
  if (plans_) return {};
  if (!found->is_factored) {
    invert_and_factor(found->h, found->input->k, options_.gptq_damping);
    found->is_factored = true;
  }
  return found->h;
}

int64_t Hessians::held_bytes() const {
  return budget_.report().now_bytes;
}

// The wanted one, and those after it that there is room for: half of what the limit leaves is for them, the
// other half for the model; where that is too little for the model, one alone.
void Hessians::collect(size_t first) {
  sums_.clear();
  charge_.reset();
  const int64_t limit = options_.memory_limit_bytes;
  int64_t room = room_;
  if (limit > 0) room = std::min(room, std::max<int64_t>(0, limit - held_bytes()) / 2);
  const auto take = [&](int64_t space) {
    sums_.clear();
    charge_.reset();
    int64_t bytes = 0;
    for (size_t i = first; i < inputs_.size(); ++i) {
      const int64_t more = checked_mul(square(inputs_[i]), kSumBytes + kRunBytes);
      if (i > first && bytes + more > space) break;
      bytes += more;
      sums_.push_back({&inputs_[i], {}, false});
    }
    int64_t own = 0;
    for (const Sum& sum : sums_) own += square(*sum.input) * kSumBytes;
    charge_ = Charge(budget_, Account::kSession, own);
    const int64_t rest = limit > 0 ? std::max<int64_t>(1, limit - held_bytes()) : 0;
    if (plans_) return plan_pass(rest);
    for (Sum& sum : sums_) sum.h.assign(static_cast<size_t>(square(*sum.input)), 0.0);
    run_pass(rest);
  };
  try {
    take(room);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBudgetExceeded || sums_.size() < 2) throw;
    take(0);
  }
}

SamplePassOptions Hessians::pass_options(int64_t limit, std::vector<ObservedProduct> products) const {
  SamplePassOptions settings;
  settings.reader = options_.calibration;
  settings.stage = "sample for GPTQ";
  settings.progress = options_.progress;
  settings.memory_limit_bytes = limit;
  settings.threads = options_.threads;
  settings.rewrite = [all = std::move(products)](Graph& graph) { observe_products(graph, all); };
  return settings;
}

void Hessians::begin() {
  if (has_begun_ && !options_.calibration->Rewind())
    fail(ErrorCode::kInvalidArgument,
         "GPTQ goes through the samples more than once: expected a reader that can begin anew");
  has_begun_ = true;
}

// What run_pass would take. One alone that does not fit is not refused but charged: the plan shows it.
void Hessians::plan_pass(int64_t limit) {
  std::vector<ObservedProduct> products;
  for (const Sum& sum : sums_) products.push_back({sum.input->name, sum.input->k});
  begin();
  const SamplePass::Needs pass = SamplePass(env_, model_, pass_options(0, std::move(products))).needs();
  if (limit > 0 && pass.smallest_limit_bytes > limit && sums_.size() > 1)
    fail(ErrorCode::kBudgetExceeded, "GPTQ: the sums of {} products do not fit", sums_.size());
  const int64_t most = std::max(limit, pass.smallest_limit_bytes);
  const Charge beside(budget_, Account::kSession,
                      limit > 0 ? std::min(pass.peak_bytes, most) : pass.peak_bytes);
}

void Hessians::run_pass(int64_t limit) {
  std::vector<ObservedProduct> products;
  for (const Sum& sum : sums_) products.push_back({sum.input->name, sum.input->k});
  begin();
  SamplePass pass(env_, model_, pass_options(limit, std::move(products)));
  const int64_t samples = pass.each([&](const std::vector<Value>& outputs, int64_t) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const auto* numbers = outputs[i].GetTensorData<float>();
      for (double& element : sums_[i].h) element += *numbers++;
    }
  });
  if (samples == 0) fail(ErrorCode::kInvalidArgument, "GPTQ: expected at least one sample, found none");
  samples_ = samples;
  told_ = std::max(told_, pass.told_bytes() + held_bytes());
  peak_ = std::max(peak_, pass.peak_bytes() + held_bytes());
}

}  // namespace plimsoll
