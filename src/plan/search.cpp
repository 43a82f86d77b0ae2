#include <algorithm>
#include <memory>
#include <numeric>

#include "plan/branch.h"
#include "plan/placement.h"
#include "plan/ranks.h"
#include "plan/space.h"

namespace plimsoll::plan {
namespace {

using Clock = std::chrono::steady_clock;

// Every offset in the form that Branch looks for, hence every peak worth asking for, is a multiple of it.
int64_t granularity(const Space& space) {
  int64_t step = 0;
  for (const Item& item : space.items) {
    step = std::gcd(step, item.size);
    if (item.pinned != kNotPinned) step = std::gcd(step, item.pinned);
  }
  for (const Item& item : space.items) step = std::gcd(step, step % item.alignment ? item.alignment : step);
  return step;
}

// The best placement of one part of a space, improved while there is time.
class PartSearch {
 public:
  explicit PartSearch(Space part)
      : part_(std::move(part)), step_(granularity(part_)), proven_(part_.bound), ranks_(part_) {
    offsets_ = greedy_race(part_, kUnlimited);
    peak_ = peak_of(part_, offsets_);
  }

  // Looks for a peak of at most `target`.
  Outcome attempt(int64_t target, Clock::time_point deadline) {
    target -= target % step_;
    if (target < proven_) return Outcome::kImpossible;
    if (part_.items.size() > kMostItems) return Outcome::kStopped;
    if (!branch_) branch_.emplace(part_.items);
    if (target > remembered_) branch_->forget();
    remembered_ = target;
    ranks_.restart();
    int64_t nodes = kFirstNodes;
    while (Clock::now() < deadline) {
      const std::vector<int> rank = ranks_.next();
      if (ranks_.turn() > Ranks::kKinds) nodes = kRestartNodes + kMoreNodes * ranks_.turn();
      const Outcome outcome = branch_->run(target, rank, nodes, deadline);
      if (outcome == Outcome::kStopped) continue;
      if (outcome == Outcome::kImpossible) proven_ = target + step_;
      if (outcome == Outcome::kFound) {
        offsets_ = branch_->offsets();
        peak_ = peak_of(part_, offsets_);
      }
      return outcome;
    }
    return Outcome::kStopped;
  }

  // Until the peak is proven least or at most `enough`. Asks for the least conceivable peak first, since it
  // is often reached; then halves the distance to the best known one. Each question has half of the time
  // left.
  void minimise(int64_t enough, Clock::time_point deadline) {
    enough -= enough % step_;
    const auto goal = [&] { return std::max(proven_, enough); };
    int64_t failed = goal() - step_;  // the largest target not found, impossible or not
    bool from_below = true;
    while (peak_ > goal() && part_.items.size() <= kMostItems) {
      const Clock::duration left = deadline - Clock::now();
      if (left < std::chrono::milliseconds(1)) return;
      const int64_t target = from_below ? goal() : failed + (peak_ - failed) / step_ / 2 * step_;
      if (attempt(target, Clock::now() + left / 2) != Outcome::kFound) failed = target;
      failed = std::max(failed, goal() - step_);
      from_below = failed + step_ >= peak_;  // every question was asked: again, with more time
    }
  }

  int64_t peak() const { return peak_; }
  int64_t proven() const { return proven_; }  // no peak is below
  void store_in(Placement& placement) const {
    for (size_t i = 0; i < offsets_.size(); ++i) placement.offsets[part_.items[i].buffer] = offsets_[i];
  }

 private:
  static constexpr size_t kMostItems = 2000;  // Branch takes up to 12 bytes per pair of items: 48 MB
  static constexpr int64_t kFirstNodes = 20000, kRestartNodes = 3000, kMoreNodes = 50;

  const Space part_;
  const int64_t step_;
  int64_t proven_;
  int64_t peak_ = 0;
  int64_t remembered_ = 0;  // the capacity that branch_'s memory is about
  Offsets offsets_;
  std::optional<Branch> branch_;
  Ranks ranks_;
};

// When the first of `count` equal shares of the time left ends. A duration divided by an unsigned number
// turns time that has run out into centuries, hence int64_t.
Clock::time_point share(Clock::time_point deadline, int64_t count) {
  const Clock::time_point now = Clock::now();
  return now + (deadline - now) / count;
}

struct Answer {
  bool fits, proven;
};

// All parts of one space, the highest first. A part needs no smaller peak than another one is bound to have.
Answer search_space(const Space& space, Goal goal, Clock::time_point deadline, int index,
                    Placement& placement) {
  std::vector<std::unique_ptr<PartSearch>> parts;
  for (Space& part : split_in_time(space)) parts.push_back(std::make_unique<PartSearch>(std::move(part)));
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a->peak() > b->peak(); });
  int64_t proven = space.bound, peak = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    PartSearch& part = *parts[i];
    const int64_t enough = std::max(proven, peak);
    const auto open = std::count_if(parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end(),
                                    [&](const auto& p) { return p->peak() > enough; });
    const Clock::time_point until =
        goal == Goal::kFit ? deadline : share(deadline, std::max<int64_t>(open, 1));
    if (goal == Goal::kMinimise) part.minimise(enough, until);
    if (goal == Goal::kFit && part.peak() > space.capacity) part.attempt(space.capacity, until);
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
  Answer all{true, true};
  for (int s = 0; s < space_count(problem); ++s) {
    const Space space = make_space(problem, s);
    if (space.pins_collide || space.bound > space.capacity) return {std::nullopt, true};
    const Clock::time_point until = share(options.deadline, space_count(problem) - s);
    const Answer answer = search_space(space, options.goal, until, s, placement);
    if (!answer.fits && answer.proven) return {std::nullopt, true};
    all = {all.fits && answer.fits, all.proven && answer.proven};
  }
  if (!all.fits) return {std::nullopt, false};
  return {std::move(placement), all.proven};
}

}  // namespace plimsoll::plan
