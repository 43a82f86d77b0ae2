#include "prepare/recompute.h"

#include <algorithm>

#include "prepare/recompute_search.h"

namespace plimsoll {
namespace {

constexpr size_t kMostTurns = 20'000;  // of an order that is searched: larger ones run as they are
constexpr size_t kMostLevels = 6;      // values that are made again can be let go again, and so on
constexpr size_t kStarts = 10;         // plans from which runs are taken back
// Neighbouring points differ by so much.
constexpr double kStep = 0.985;

Turns copy_of(const Turns& turns, std::pmr::memory_resource* memory) {
  return Turns(turns, memory);
}

class FrontBuilder {
 public:
  FrontBuilder(const TurnModel& model, TransientMemory& memory)
      : memory_(memory.resource()), search_(model, memory_), pool_(memory_), steps_(memory_) {}

  void run(const TurnModel& model) {
    TurnPlan natural = search_.measured(copy_of(model.order, memory_));
    natural_ = natural.peak_bytes;
    least_time_ = natural.time;
    for (double bytes = static_cast<double>(natural_); bytes > static_cast<double>(natural_) / 100;
         bytes *= kStep)
      steps_.push_back({static_cast<int64_t>(bytes), 0, Turns(memory_)});
    if (steps_.empty() || model.order.size() > kMostTurns) return;
    dig(std::move(natural));
    for (const TurnPlan* start : starts()) climb(*start);
  }
  int64_t natural_bytes() const { return natural_; }

  // From large to small; each slower than the one before.
  std::pmr::vector<RecomputeFront::Point> points() {
    std::pmr::vector<RecomputeFront::Point> result(memory_);
    for (RecomputeFront::Point& step : steps_) {
      if (step.turns.empty()) continue;
      while (!result.empty() && result.back().time >= step.time) result.pop_back();
      result.push_back(std::move(step));
    }
    return result;
  }

 private:
  // Lets go of more and more, from the plans that came lowest.
  void dig(TurnPlan natural) {
    std::pmr::vector<TurnPlan> frontier(memory_);
    frontier.push_back(std::move(natural));
    for (size_t level = 0; level < kMostLevels && !frontier.empty(); ++level) {
      const int64_t lowest = lowest_peak();
      std::pmr::vector<TurnPlan> next(memory_);
      for (const TurnPlan& plan : frontier) {
        for (TurnPlan& found : search_.drop(plan, level == 0 ? 9 : 5, level == 0 ? 8 : 4)) {
          if (found.turns.size() > 8 * steps_.size() + 3 * plan.turns.size()) continue;
          next.push_back(std::move(found));
        }
      }
      std::stable_sort(next.begin(), next.end(), [](const TurnPlan& a, const TurnPlan& b) {
        return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time < b.time;
      });
      for (const TurnPlan& plan : next)
        pool_.push_back({plan.peak_bytes, plan.time, copy_of(plan.turns, memory_)});
      frontier = widest(std::move(next), 3);
      if (level > 0 && lowest_peak() > lowest - lowest / 100) break;
    }
  }

  int64_t lowest_peak() const {
    int64_t lowest = natural_;
    for (const TurnPlan& plan : pool_) lowest = std::min(lowest, plan.peak_bytes);
    return lowest;
  }

  // The lowest few that differ in time: each next one is faster.
  std::pmr::vector<TurnPlan> widest(std::pmr::vector<TurnPlan> sorted, size_t count) {
    std::pmr::vector<TurnPlan> result(memory_);
    for (TurnPlan& plan : sorted) {
      if (result.size() == count) break;
      if (!result.empty() && plan.time >= result.back().time) continue;
      result.push_back(std::move(plan));
    }
    return result;
  }

  // Of all plans those that no other beats in both, thinned out.
  std::pmr::vector<const TurnPlan*> starts() {
    std::stable_sort(pool_.begin(), pool_.end(), [](const TurnPlan& a, const TurnPlan& b) {
      return a.peak_bytes != b.peak_bytes ? a.peak_bytes < b.peak_bytes : a.time < b.time;
    });
    std::pmr::vector<const TurnPlan*> front(memory_);
    for (const TurnPlan& plan : pool_) {
      if (plan.peak_bytes < natural_ && (front.empty() || plan.time < front.back()->time))
        front.push_back(&plan);
    }
    if (front.size() <= kStarts) return front;
    std::pmr::vector<const TurnPlan*> thin(memory_);
    for (size_t i = 0; i < kStarts; ++i) thin.push_back(front[i * (front.size() - 1) / (kStarts - 1)]);
    thin.erase(std::unique(thin.begin(), thin.end()), thin.end());
    return thin;
  }

  // From its peak up to that of the natural order, takes back what fits.
  void climb(const TurnPlan& start) {
    TurnPlan plan = search_.keep(start, start.peak_bytes);
    for (size_t s = steps_.size(); s-- > 0;) {
      RecomputeFront::Point& step = steps_[s];
      if (step.live_bytes < plan.peak_bytes) continue;
      plan = search_.keep(plan, step.live_bytes);
      if (step.turns.empty() || plan.time < step.time) {
        step.time = plan.time;
        step.turns = plan.turns;
      }
      if (plan.time <= least_time_) break;
    }
  }

  std::pmr::memory_resource* memory_;
  RecomputeSearch search_;
  std::pmr::vector<TurnPlan> pool_;
  std::pmr::vector<RecomputeFront::Point> steps_;  // by bytes, from the natural order's down
  int64_t natural_ = 0, least_time_ = 0;
};

}  // namespace

RecomputeFront::RecomputeFront(const TurnModel& model, TransientMemory& memory) : points_(memory.resource()) {
  FrontBuilder builder(model, memory);
  builder.run(model);
  natural_bytes_ = builder.natural_bytes();
  points_ = builder.points();
}

Turns recompute_nodes(const TurnModel& model, uint32_t middle, const std::pmr::vector<bool>& nodes,
                      TransientMemory& memory) {
  RecomputeSearch search(model, memory.resource());
  const TurnPlan natural = search.measured(copy_of(model.order, memory.resource()));
  return search.drop_nodes(natural, middle, nodes).turns;
}

Recomputation recomputation_of(const TurnModel& model, const Schedule& schedule) {
  Recomputation result;
  std::vector<uint32_t> times(model.nodes.size(), 0);
  std::unordered_map<const Node*, uint32_t> numbers;
  for (uint32_t n = 0; n < model.nodes.size(); ++n) numbers[model.nodes[n].node] = n;
  for (const Turn& turn : schedule) ++times[numbers.at(turn.node)];
  int64_t once = 0, extra = 0;
  for (uint32_t n = 0; n < model.nodes.size(); ++n) {
    const TurnModel::NodeInfo& node = model.nodes[n];
    once += node.time;
    result.operations += node.operations;
    if (times[n] < 2 || node.free) continue;
    const uint32_t again = times[n] - 1;
    result.nodes.push_back({node.node, again});
    extra += node.time * again;
    result.extra_operations += node.operations * again;
  }
  result.extra_time = once == 0 ? 0 : static_cast<double>(extra) / static_cast<double>(once);
  return result;
}

}  // namespace plimsoll
