#include "memory/budget.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/fail.h"

namespace plimsoll {

const char* account_name(Account account) noexcept {
  static constexpr const char* kNames[] = {"weights", "packed", "planned", "dynamic",   "scratch",
                                           "bound",   "code",   "session", "gradients", "optimizer"};
  static_assert(std::size(kNames) == kAccounts);
  return kNames[static_cast<size_t>(account)];
}

Budget::Budget(std::string name, int64_t limit_bytes, Budget* parent)
    : name_(std::move(name)), limit_(limit_bytes), parent_(parent) {}

void Budget::Counter::add(int64_t bytes) noexcept {
  const int64_t after = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (after > seen && !peak.compare_exchange_weak(seen, after, std::memory_order_relaxed)) {
  }
}

bool Budget::try_charge(Account account, int64_t bytes) noexcept {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  int64_t now = total_.now.load(std::memory_order_relaxed);
  do {
    if (limit > 0 && bytes > limit - now) return false;
  } while (!total_.now.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  accounts_[static_cast<size_t>(account)].add(bytes);
  int64_t seen = total_.peak.load(std::memory_order_relaxed);
  while (now + bytes > seen) {
    if (!total_.peak.compare_exchange_weak(seen, now + bytes, std::memory_order_relaxed)) continue;
    for (size_t i = 0; i < kAccounts; ++i)
      at_peak_[i].store(accounts_[i].now.load(std::memory_order_relaxed), std::memory_order_relaxed);
    break;
  }
  return true;
}

void Budget::undo(Account account, int64_t bytes) noexcept {
  total_.now.fetch_sub(bytes, std::memory_order_relaxed);
  accounts_[static_cast<size_t>(account)].now.fetch_sub(bytes, std::memory_order_relaxed);
}

void Budget::charge(Account account, int64_t bytes) {
  for (Budget* level = this; level != nullptr; level = level->parent_) {
    if (level->try_charge(account, bytes)) continue;
    for (Budget* done = this; done != level; done = done->parent_) done->undo(account, bytes);
    fail(ErrorCode::kBudgetExceeded,
         "{}: {} bytes for '{}' would cross the limit of {} bytes ({} in use); raise the limit or make the "
         "shapes smaller",
         level->name_, bytes, account_name(account), level->limit_.load(), level->total_.now.load());
  }
}

void Budget::release(Account account, int64_t bytes) noexcept {
  for (Budget* level = this; level != nullptr; level = level->parent_) level->undo(account, bytes);
}

int64_t Budget::available() const noexcept {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Budget* level = this; level != nullptr; level = level->parent_) {
    const int64_t limit = level->limit_.load(std::memory_order_relaxed);
    if (limit > 0) least = std::min(least, limit - level->total_.now.load(std::memory_order_relaxed));
  }
  return least;
}

MemoryReport Budget::report() const {
  MemoryReport report;
  for (size_t i = 0; i < kAccounts; ++i) {
    report.accounts[i] = {accounts_[i].now.load(std::memory_order_relaxed),
                          accounts_[i].peak.load(std::memory_order_relaxed),
                          at_peak_[i].load(std::memory_order_relaxed)};
  }
  report.now_bytes = total_.now.load(std::memory_order_relaxed);
  report.peak_bytes = total_.peak.load(std::memory_order_relaxed);
  report.limit_bytes = limit_.load(std::memory_order_relaxed);
  return report;
}

Charge::Charge(Budget& budget, Account account, int64_t bytes) : account_(account) {
  budget.charge(account, bytes);
  budget_ = &budget;
  bytes_ = bytes;
}

Charge::Charge(Charge&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      account_(other.account_),
      bytes_(std::exchange(other.bytes_, 0)) {}

Charge& Charge::operator=(Charge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(account_, other.account_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Charge::reset() noexcept {
  if (budget_ != nullptr) budget_->release(account_, bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

void Charge::grow(int64_t bytes) {
  budget_->charge(account_, bytes);
  bytes_ += bytes;
}

}  // namespace plimsoll
