// A fast search on the question: is there a placement of these items within this capacity?
#pragma once

#include <chrono>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

enum class Outcome { kFound, kImpossible, kStopped };

// What a search may still spend. Work is counted in buffers and sections looked at, so that it is the same on
// every machine: about 100 million per second of one core.
struct Effort {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();
  int64_t work = kUnlimited;

  bool is_spent() const {
    return work <= 0 || (deadline != Clock::time_point::max() && Clock::now() >= deadline);
  }
};

// Buffers are placed in order of rising offset, those of equal offset in order of rising rank; each as low as
// the ones below it allow (its "rest"). Every solution can be pushed down into this form. It
// remembers nothing of what failed: a node costs microseconds, and is undone along a trail. A branch is left
// when
//  - in some section, what remains does not fit above the lowest rest there;
//  - another buffer would fit entirely below the one to place;
//  - a buffer that was passed over can no longer be pushed up by another one;
//  - nothing remains above the buffer placed last: what failed after it was not its fault.
// When the remaining buffers fall apart into groups that never live together, each group is ranked anew and
// solved alone.
class Ascent {
 public:
  // What comes first among buffers of equal rest: the longer lifetime, the larger area, the busier time.
  enum class Order { kLifetimeAreaBusy, kBusyAreaLifetime, kBusyLifetimeArea };
  static constexpr Order kOrders[] = {Order::kLifetimeAreaBusy, Order::kBusyAreaLifetime,
                                      Order::kBusyLifetimeArea};

  explicit Ascent(const std::pmr::vector<Item>& items);

  // Gives up after `nodes` branches, or when the effort, from which it takes what it spends, is spent.
  Outcome run(int64_t capacity, Order order, int64_t nodes, Effort& effort);

  const Offsets& offsets() const { return offsets_; }  // after kFound: per item

 private:
  struct Waiting {
    int64_t rest;
    int rank, item;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return a.rest != b.rest ? a.rest < b.rest : a.rank < b.rank;
    }
  };
  struct Sections {
    int first, last;
  };
  // The waiting items of a group: waiting_[begin, end), by rest, then rank.
  struct Group {
    size_t begin, end;
    Sections sections;
  };
  struct Raised {
    int item;
    int64_t rest;  // before
  };
  struct Risen {
    int section;
    int64_t floor;  // before
  };
  struct Mark {
    size_t placed, raised, risen, waiting;
  };

  Outcome solve(Group group, int64_t level, int least_rank);
  Outcome place_and_solve(const Group& group, const Waiting& next);
  Outcome solve_parts(const Group& group, int64_t level);
  Group without_placed(const Group& group);
  void rank(const Group& group);
  bool place(const Waiting& next);
  bool update_floors(size_t raised_from, int64_t level);
  bool fits(Sections sections, int64_t level) const;
  bool can_rise(const Waiting& passed, int64_t level) const;
  bool is_split(const Item& item) const;
  Mark mark() const { return {placed_.size(), raised_.size(), risen_.size(), waiting_.size()}; }
  void undo(const Mark& mark);
  bool is_spent();

  const std::pmr::vector<Item>& items_;
  Offsets offsets_;
  std::pmr::vector<int> neighbours_, neighbours_begin_;  // items that live together with item i
  std::pmr::vector<int> members_, members_begin_;        // items alive in section s
  std::pmr::vector<char> is_placed_;
  std::pmr::vector<int> above_;     // per item: its neighbours that are not placed
  std::pmr::vector<int64_t> rest_;  // per item: the least offset it can have
  std::pmr::vector<int64_t> floor_,
      remaining_;                   // per section: the lowest rest, and the bytes, of what is not placed
  std::pmr::vector<int> crossing_;  // per section: items not placed that are alive in the next one too
  std::pmr::vector<Waiting> waiting_, merged_;  // a stack of groups; scratch
  std::pmr::vector<int> placed_;                // the trail
  std::pmr::vector<Raised> raised_;
  std::pmr::vector<Risen> risen_;
  Order order_ = Order::kLifetimeAreaBusy;
  int64_t capacity_ = 0, nodes_left_ = 0;
  Effort* effort_ = nullptr;
};

}  // namespace plimsoll::plan
