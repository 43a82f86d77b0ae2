#include "prepare/requirement.h"

#include <algorithm>

#include "base/checked.h"
#include "memory/mapping.h"

namespace plimsoll {
namespace {

using Accounts = std::array<int64_t, kAccounts>;

int64_t& of(Accounts& accounts, Account account) {
  return accounts[static_cast<size_t>(account)];
}

int64_t total(const Accounts& accounts) {
  int64_t sum = 0;
  for (int64_t bytes : accounts) sum = checked_add(sum, bytes);
  return sum;
}

Accounts loaded(const PreparedModel& model) {
  Accounts accounts{};
  of(accounts, Account::kSession) = model.memory_bytes();
  of(accounts, Account::kWeights) =
      model.weights().weights_bytes() + model.source_bytes() + model.defaults_bytes();
  of(accounts, Account::kPacked) = model.weights().packed_bytes();
  for (const Account account : {Account::kGradients, Account::kOptimizer})
    of(accounts, account) = model.weights().state_bytes(account);
  return accounts;
}

Accounts preparing(const PreparedModel& model) {
  Accounts accounts{};
  of(accounts, Account::kSession) = model.prepare_peak_bytes();
  of(accounts, Account::kWeights) = model.source_bytes();
  return accounts;
}

// What is there while the weights are loaded, and then leaves.
void add_passing(Accounts& accounts, const PreparedModel& model) {
  of(accounts, Account::kSession) += model.weights().passing_bytes();
  of(accounts, Account::kWeights) += model.weights().largest_raw_bytes();
}

Accounts loading(const PreparedModel& model, const ShapePlan& shape) {
  Accounts accounts = loaded(model);
  if (!shape.planned_after_load()) of(accounts, Account::kSession) += shape.memory_bytes();
  add_passing(accounts, model);
  return accounts;
}

Accounts planning(const PreparedModel& model, const ShapePlan& shape) {
  Accounts accounts{};
  if (shape.planned_after_load()) {
    accounts = loaded(model);
  } else {
    of(accounts, Account::kSession) = model.memory_bytes() + model.weights().passing_bytes();
    of(accounts, Account::kWeights) = model.source_bytes();
  }
  of(accounts, Account::kSession) += shape.planning_peak_bytes();
  return accounts;
}

Accounts running(const PreparedModel& model, const ShapePlan& shape, int64_t planned) {
  Accounts accounts = loaded(model);
  const int64_t runs = model.options().concurrent_runs;
  of(accounts, Account::kSession) += shape.memory_bytes();
  of(accounts, Account::kPlanned) = checked_mul(runs, planned);
  of(accounts, Account::kBound) = checked_mul(runs, shape.bound_bytes());
  return accounts;
}

Requirement worst(std::initializer_list<Accounts> moments) {
  Requirement need;
  for (const Accounts& accounts : moments) {
    const int64_t bytes = total(accounts);
    if (bytes > need.peak_bytes) need = {accounts, bytes};
  }
  return need;
}

}  // namespace

Requirement requirement(const PreparedModel& model, const ShapePlan& shape) {
  return worst({running(model, shape, shape.planned_bytes()), planning(model, shape), loading(model, shape),
                preparing(model)});
}

Requirement requirement(const PreparedModel& model, std::span<const std::shared_ptr<ShapePlan>> plans) {
  Requirement need = worst({preparing(model)});
  const auto meet = [&](const Accounts& accounts) {
    if (total(accounts) > need.peak_bytes) need = {accounts, total(accounts)};
  };
  int64_t before = 0;  // plans that are there already
  Accounts run = loaded(model), load = loaded(model);
  for (const std::shared_ptr<ShapePlan>& plan : plans) {
    Accounts making = planning(model, *plan);
    of(making, Account::kSession) += before;
    meet(making);
    before += plan->memory_bytes();
    of(run, Account::kPlanned) = std::max(of(run, Account::kPlanned), plan->planned_bytes());
    of(run, Account::kBound) = std::max(of(run, Account::kBound), plan->bound_bytes());
  }
  of(run, Account::kSession) += before;
  of(load, Account::kSession) += before;
  add_passing(load, model);
  meet(load);
  meet(run);
  return need;
}

int64_t lower_bound_bytes(const PreparedModel& model, const ShapePlan& shape) {
  return worst({running(model, shape, shape.most_live_bytes()), planning(model, shape), loading(model, shape),
                preparing(model)})
      .peak_bytes;
}

int64_t planned_bytes_within(const PreparedModel& model, const ShapePlan& plan, int64_t needed_bytes,
                             int64_t limit_bytes) {
  const int64_t runs = model.options().concurrent_runs, excess = needed_bytes - limit_bytes;
  const int64_t bytes = plan.planned_bytes() - (excess + runs - 1) / runs;
  return bytes / page_bytes() * page_bytes();  // the arena is whole pages
}

void refuse(const ShapePlan& shape, const LeastNeed& least, int64_t limit_bytes) {
  const char* at_least = shape.depends_on_data() ? "; values whose shape depends on data come on top" : "";
  const std::string smallest =
      least.may_be_less
          ? fmt::format(
                "a limit of {} would do, and perhaps a smaller one, which a plan without a limit tells",
                least.bytes)
          : fmt::format("the smallest limit that would do is {}", least.bytes);
  fail(
      ErrorCode::kBudgetExceeded,
      "the limit of {} bytes is too small: these shapes need {} bytes, most of the activations at node '{}'; "
      "{}{}",
      limit_bytes, least.bytes, shape.node_at_peak(), smallest, at_least);
}

}  // namespace plimsoll
