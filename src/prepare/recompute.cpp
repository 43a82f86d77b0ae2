#include "prepare/recompute.h"

#include <algorithm>

#include "prepare/recompute_search.h"

namespace plimsoll {
namespace {

constexpr size_t kMostTurns = 20'000;  // of an order that is searched: larger ones run as they are
constexpr size_t kMostLevels = 20;     // values that are made again can be let go again, and so on
constexpr size_t kStarts = 24;         // plans from which runs are taken back
constexpr size_t kAnew = 3;            // steps after which what is taken back is decided anew
// Neighbouring points differ by so much.
constexpr double kStep = 0.985;

// How wide the search is: large orders are looked at less closely, so that the
// work stays bounded.
struct Breadth {
  size_t lengths, prices, plans;
};
Breadth breadth_for(size_t turns) {
  if (turns <= 1500) return {9, 8, 8};
  return turns <= 6000 ? Breadth{7, 6, 4} : Breadth{5, 4, 2};
}

Turns copy_of(const Turns& turns, std::pmr::memory_resource* memory) {
  return Turns(turns, memory);
}

class FrontBuilder {
 public:
  FrontBuilder(const TurnModel& model, TransientMemory& memory)
      : memory_(memory.resource()), search_(model, memory_), pool_(memory_), steps_(memory_) {}

  void run(const TurnModel& model, const Turns& another) {
    TurnPlan natural = search_.measured(copy_of(model.order, memory_));
    natural_ = natural.peak_bytes;
    least_time_ = natural.time;
    for (double bytes = static_cast<double>(natural_); bytes > static_cast<double>(natural_) / 100;
         bytes *= kStep)
      steps_.push_back({static_cast<int64_t>(bytes), 0, Turns(memory_)});
    if (steps_.empty() || model.order.size() > kMostTurns) return;
    dig(std::move(natural));
    if (another != model.order) dig(search_.measured(copy_of(another, memory_)));
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
    const Breadth breadth = breadth_for(natural.turns.size());
    std::pmr::vector<TurnPlan> frontier(memory_);
    frontier.push_back(std::move(natural));
    for (size_t level = 0; level < kMostLevels && !frontier.empty(); ++level) {
      const int64_t lowest = lowest_peak();
      std::pmr::vector<TurnPlan> next(memory_);
      for (const TurnPlan& plan : frontier) {
        search_.drop(plan, breadth.lengths, breadth.prices, [&](TurnPlan found) {
          if (found.turns.size() > kMostTurns) return;
          offer(pool_, found);
          offer(next, found);
        });
      }
      // The lowest, from which the way is shortest to lower ones.
      if (next.size() > breadth.plans) next.resize(breadth.plans, TurnPlan{0, 0, Turns(memory_)});
      frontier = std::move(next);
      if (level > 0 && lowest_peak() >= lowest) break;
    }
  }

  int64_t lowest_peak() const { return pool_.empty() ? natural_ : std::min(natural_, pool_[0].peak_bytes); }

  // Adds a plan to those that no other beats in both, which are in the order of their peaks.
  void offer(std::pmr::vector<TurnPlan>& plans, const TurnPlan& plan) const {
    const auto at = std::find_if(plans.begin(), plans.end(),
                                 [&](const TurnPlan& other) { return other.peak_bytes >= plan.peak_bytes; });
    if (at != plans.begin() && (at - 1)->time <= plan.time) return;
    if (at != plans.end() && at->peak_bytes == plan.peak_bytes && at->time <= plan.time) return;
    const auto beaten_to =
        std::find_if(at, plans.end(), [&](const TurnPlan& other) { return other.time < plan.time; });
    const auto place = plans.erase(at, beaten_to);
    plans.insert(place, TurnPlan{plan.peak_bytes, plan.time, copy_of(plan.turns, memory_)});
  }

  // Some of the plans, from the lowest to the fastest.
  std::pmr::vector<const TurnPlan*> starts() {
    std::pmr::vector<const TurnPlan*> front(memory_);
    for (const TurnPlan& plan : pool_) {
      if (plan.peak_bytes < natural_) front.push_back(&plan);
    }
    if (front.size() <= kStarts) return front;
    std::pmr::vector<const TurnPlan*> thin(memory_);
    for (size_t i = 0; i < kStarts; ++i) thin.push_back(front[i * (front.size() - 1) / (kStarts - 1)]);
    thin.erase(std::unique(thin.begin(), thin.end()), thin.end());
    return thin;
  }

  // From its peak up to that of the natural order, takes back what fits. In small steps that is what is
  // small, however cheap it is to run again, and it stays in the way of what is large and dear: so that every
  // few steps all of it is chosen anew.
  void climb(const TurnPlan& start) {
    const TurnPlan first = search_.keep(start, start.peak_bytes);
    TurnPlan plan{first.peak_bytes, first.time, copy_of(first.turns, memory_)};
    size_t climbed = 0;
    for (size_t s = steps_.size(); s-- > 0;) {
      RecomputeFront::Point& step = steps_[s];
      if (step.live_bytes < plan.peak_bytes) continue;
      plan = search_.keep(plan, step.live_bytes);
      if (++climbed % kAnew == 0) {
        TurnPlan anew = search_.keep(first, step.live_bytes);
        if (anew.time < plan.time) plan = std::move(anew);
      }
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

RecomputeFront::RecomputeFront(const TurnModel& model, const Turns& another, TransientMemory& memory)
    : points_(memory.resource()) {
  FrontBuilder builder(model, memory);
  builder.run(model, another);
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
