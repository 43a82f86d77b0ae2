// Budgets form a tree: process over session over run. A charge is taken from every level or from none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "plimsoll/memory_report.h"

namespace plimsoll {

// Thread-safe without locks. A parent must outlive its children. Limit 0 means no limit of its own.
class Budget {
 public:
  Budget(std::string name, int64_t limit_bytes, Budget* parent = nullptr);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Throws kBudgetExceeded, having charged nothing, if any level would cross its line.
  void charge(Account account, int64_t bytes);
  void release(Account account, int64_t bytes) noexcept;
  // What could still be charged before the nearest line.
  int64_t available() const noexcept;
  MemoryReport report() const;
  int64_t limit_bytes() const { return limit_; }
  void set_limit_bytes(int64_t limit) { limit_ = limit; }

 private:
  struct Counter {
    std::atomic<int64_t> now{0};
    std::atomic<int64_t> peak{0};
    void add(int64_t bytes) noexcept;
  };
  bool try_charge(Account account, int64_t bytes) noexcept;
  void undo(Account account, int64_t bytes) noexcept;

  std::string name_;
  std::atomic<int64_t> limit_;
  Budget* parent_;
  Counter total_;
  std::array<Counter, kAccounts> accounts_;
  std::array<std::atomic<int64_t>, kAccounts> at_peak_{};  // of each account, when the total was highest
};

// A charge that is released when it goes out of scope. Movable.
class Charge {
 public:
  Charge() = default;
  Charge(Budget& budget, Account account, int64_t bytes);
  Charge(Charge&& other) noexcept;
  Charge& operator=(Charge&& other) noexcept;
  ~Charge() { reset(); }
  int64_t bytes() const { return bytes_; }
  void reset() noexcept;
  // Whoever releases the bytes is somebody else from now on.
  void keep() noexcept { budget_ = nullptr; }
  // Takes `bytes` more; on failure nothing has changed.
  void grow(int64_t bytes);

 private:
  Budget* budget_ = nullptr;
  Account account_ = Account::kSession;
  int64_t bytes_ = 0;
};

}  // namespace plimsoll
