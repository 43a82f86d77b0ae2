#include <algorithm>
#include <memory>
#include <numeric>

#include "plan/ascent.h"
#include "plan/placement.h"
#include "plan/space.h"

namespace plimsoll::plan {
namespace {

using Clock = std::chrono::steady_clock;

// Every offset in the form that Ascent looks for, hence every peak worth asking for, is a multiple of it.
int64_t granularity(const Space& space) {
  int64_t step = 0;
  for (const Item& item : space.items) {
    step = std::gcd(step, item.size);
    if (item.pinned != kNotPinned) step = std::gcd(step, item.pinned);
  }
  for (const Item& item : space.items) step = std::gcd(step, step % item.alignment ? item.alignment : step);
  return step;
}

// The first of `count` equal shares of what is left.
Effort share(const Effort& all, int64_t count) {
  Effort one = all;
  if (all.work != kUnlimited) one.work = all.work / count;
  if (all.deadline == Clock::time_point::max()) return one;
  const Clock::time_point now = Clock::now();
  one.deadline = now + (all.deadline - now) / count;  // signed: time that has run out stays in the past
  return one;
}

// The best placement of one part of a space, improved while there is effort left.
class PartSearch {
 public:
  explicit PartSearch(Space part) : part_(std::move(part)), step_(granularity(part_)), proven_(part_.bound) {
    offsets_ = greedy_race(part_, kUnlimited);
    peak_ = peak_of(part_, offsets_);
  }

  // Looks for a peak of at most `target`. No order wins everywhere and a search that has gone wrong near its
  // root is cheaper to start anew than to finish, so that they take turns, with twice the nodes each time.
  Outcome attempt(int64_t target, Effort& effort) {
    target -= target % step_;
    if (target < proven_) return Outcome::kImpossible;
    if (is_too_large()) return Outcome::kStopped;
    if (!ascent_) ascent_.emplace(part_.items);
    for (int64_t nodes = 2 * static_cast<int64_t>(part_.items.size()); !effort.is_spent(); nodes *= 2) {
      for (const Ascent::Order order : Ascent::kOrders) {
        const Outcome outcome = ascent_->run(target, order, nodes, effort);
        if (outcome == Outcome::kStopped) continue;
        if (outcome == Outcome::kImpossible) proven_ = target + step_;
        if (outcome == Outcome::kFound) {
          offsets_ = ascent_->offsets();
          peak_ = peak_of(part_, offsets_);
        }
        return outcome;
      }
    }
    return Outcome::kStopped;
  }

  // Until the peak is proven least or at most `enough`. Asks for the least conceivable peak first, since it
  // is often reached; then halves the distance to the best known one. Each question has half of what is left.
  void minimise(int64_t enough, Effort& effort) {
    enough -= enough % step_;
    const auto goal = [&] { return std::max(proven_, enough); };
    int64_t failed = goal() - step_;  // the largest target not found, impossible or not
    bool from_below = true;
    while (peak_ > goal() && !is_too_large()) {
      Effort half = share(effort, 2);
      if (is_too_little(half)) return;
      const int64_t given = half.work;
      const int64_t target = from_below ? goal() : failed + (peak_ - failed) / step_ / 2 * step_;
      if (attempt(target, half) != Outcome::kFound) failed = target;
      effort.work -= given - half.work;
      failed = std::max(failed, goal() - step_);
      from_below = failed + step_ >= peak_;  // every question was asked: again, with more effort
    }
  }

  int64_t peak() const { return peak_; }
  int64_t proven() const { return proven_; }  // no peak is below
  void store_in(Placement& placement) const {
    for (size_t i = 0; i < offsets_.size(); ++i) placement.offsets[part_.items[i].buffer] = offsets_[i];
  }

 private:
  static constexpr size_t kMostItems = 2000;  // Ascent takes up to 8 bytes per pair of items: 32 MB
  bool is_too_large() const { return part_.items.size() > kMostItems; }

  // One step into the search has to be possible.
  bool is_too_little(const Effort& effort) const {
    return effort.work < static_cast<int64_t>(part_.items.size()) ||
           (effort.deadline != Clock::time_point::max() &&
            effort.deadline - Clock::now() < std::chrono::microseconds(500));
  }

  const Space part_;
  const int64_t step_;
  int64_t proven_;
  int64_t peak_ = 0;
  Offsets offsets_;
  std::optional<Ascent> ascent_;
};

struct Answer {
  bool fits, proven;
};

// All parts of one space, the highest first. A part needs no smaller peak than another one is bound to have.
Answer search_space(const Space& space, Goal goal, Effort& effort, int index, Placement& placement) {
  std::vector<std::unique_ptr<PartSearch>> parts;
  for (Space& part : split_in_time(space)) parts.push_back(std::make_unique<PartSearch>(std::move(part)));
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a->peak() > b->peak(); });
  int64_t proven = space.bound, peak = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    PartSearch& part = *parts[i];
    const int64_t enough = std::max(proven, peak);
    const auto open = std::count_if(parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end(),
                                    [&](const auto& p) { return p->peak() > enough; });
    Effort own = goal == Goal::kFit ? effort : share(effort, std::max<int64_t>(open, 1));
    const int64_t given = own.work;
    if (goal == Goal::kMinimise) part.minimise(enough, own);
    if (goal == Goal::kFit && part.peak() > space.capacity) part.attempt(space.capacity, own);
    effort.work -= given - own.work;
    proven = std::max(proven, part.proven());
    peak = std::max(peak, part.peak());
    if (proven > space.capacity) return {false, true};
    part.store_in(placement);
  }
  placement.peak[index] = peak;
  const bool fits = peak <= space.capacity;
  return {fits, peak <= proven || (goal == Goal::kFit && fits)};
}

}  // namespace

SearchResult place_search(const Problem& problem, const SearchOptions& options) {
  validate(problem);
  Placement placement = blank_placement(problem);
  Effort effort{options.deadline, options.work};
  Answer all{true, true};
  for (int s = 0; s < space_count(problem); ++s) {
    const Space space = make_space(problem, s);
    if (space.pins_collide || space.bound > space.capacity) return {std::nullopt, true};
    Effort own = share(effort, space_count(problem) - s);
    const int64_t given = own.work;
    const Answer answer = search_space(space, options.goal, own, s, placement);
    effort.work -= given - own.work;
    if (!answer.fits && answer.proven) return {std::nullopt, true};
    all = {all.fits && answer.fits, all.proven && answer.proven};
  }
  if (!all.fits) return {std::nullopt, false};
  return {std::move(placement), all.proven};
}

}  // namespace plimsoll::plan
