#include "prepare/updates.h"

#include <algorithm>

#include "prepare/node_aliases.h"

namespace plimsoll {
namespace {

class Settler {
 public:
  Settler(const Graph& graph, FactsTable& facts, const Schedule& order, const LifetimeOptions& options,
          TransientMemory& memory)
      : order_(order),
        memory_(memory),
        values_(graph, order, memory, options.wanted, options.updated),
        aliases_(graph, facts, memory),
        root_(values_.size(), kNoValue, memory.resource()),
        read_(values_.size(), false, memory.resource()),
        last_reader_(values_.size(), -1, memory.resource()) {}

  Schedule run() {
    find_roots();
    std::pmr::vector<bool> moves(order_.size(), false, memory_.resource());
    for (size_t t = 0; t < order_.size(); ++t) moves[t] = may_move(t);
    find_readers(moves);
    // By place: the turn after which each of them comes.
    std::pmr::vector<std::pair<int64_t, size_t>> places(memory_.resource());
    for (size_t t = 0; t < order_.size(); ++t) {
      if (moves[t]) places.emplace_back(earliest(t), t);
    }
    std::stable_sort(places.begin(), places.end());
    Schedule result(memory_.resource());
    result.reserve(order_.size());
    size_t next = 0;
    const auto take_until = [&](int64_t turn) {
      for (; next < places.size() && places[next].first <= turn; ++next)
        result.push_back(order_[places[next].second]);
    };
    take_until(-1);
    for (size_t t = 0; t < order_.size(); ++t) {
      if (!moves[t]) result.push_back(order_[t]);
      take_until(static_cast<int64_t>(t));
    }
    return result;
  }

 private:
  template <typename F>
  void for_each_read(size_t turn, F&& f) {
    for (uint32_t v : values_.reads(turn)) {
      if (v != kNoValue) f(v);
    }
    for (uint32_t v : values_.captures(turn)) f(v);
  }

  // The state that a value is or looks at.
  void find_roots() {
    for (uint32_t state : values_.states()) root_[state] = state;
    for (size_t t = 0; t < order_.size(); ++t) {
      for_each_read(t, [&](uint32_t v) { read_[v] = true; });
      const Node& node = *order_[t].node;
      if (!aliases_.is_view(node)) continue;
      for (const Alias& alias : aliases_.of(node)) {
        const uint32_t view = values_.makes(t)[alias.output];
        if (alias.kind == AliasKind::kView && view != kNoValue)
          root_[view] = root_[values_.reads(t)[alias.input]];
      }
    }
  }

  // All that it makes are next values that nobody reads, over the old ones.
  bool may_move(size_t turn) {
    const Node& node = *order_[turn].node;
    if (node.op->control_flow || aliases_.is_view(node) || aliases_.is_constant(node)) return false;
    const std::span<const uint32_t> makes = values_.makes(turn), reads = values_.reads(turn);
    size_t over = 0, made = 0;
    for (uint32_t v : makes) {
      if (v == kNoValue) continue;
      if (read_[v] || values_[v].last_use != ScheduledValue::kForever) return false;
      ++made;
    }
    for (const Alias& alias : aliases_.of(node)) {
      if (alias.kind != AliasKind::kOverwrite || alias.input >= reads.size()) continue;
      over += makes[alias.output] != kNoValue && values_.is_next(makes[alias.output], reads[alias.input]);
    }
    return made > 0 && over == made;
  }

  void find_readers(const std::pmr::vector<bool>& moves) {
    for (size_t t = 0; t < order_.size(); ++t) {
      if (moves[t]) continue;
      for_each_read(t, [&](uint32_t v) {
        if (root_[v] != kNoValue) last_reader_[root_[v]] = static_cast<int64_t>(t);
      });
    }
  }

  int64_t earliest(size_t turn) {
    int64_t after = -1;
    for_each_read(turn, [&](uint32_t v) {
      after = std::max(after, values_[v].made);
      if (root_[v] != kNoValue) after = std::max(after, last_reader_[root_[v]]);
    });
    return after;
  }

  const Schedule& order_;
  TransientMemory& memory_;
  ScheduledValues values_;
  NodeAliases aliases_;
  std::pmr::vector<uint32_t> root_;        // by value
  std::pmr::vector<bool> read_;            // by value: some turn reads it
  std::pmr::vector<int64_t> last_reader_;  // by state: of the turns that stay
};

// What stands in each state's memory, as a number that grows with every write.
class Contents {
 public:
  explicit Contents(const Lifetimes& lifetimes)
      : lifetimes_(lifetimes), now_(lifetimes.values.size(), 0), of_(lifetimes.values.size(), 0) {}

  std::vector<std::string> run() {
    size_t step = 0;
    for (size_t t = 0; t < lifetimes_.schedule.size(); ++t) {
      const Node& node = *lifetimes_.schedule[t].node;
      for (uint32_t v : lifetimes_.values.reads(t)) see(v, node.label());
      for (uint32_t v : lifetimes_.values.captures(t)) see(v, node.label());
      while (step < lifetimes_.steps.size() && lifetimes_.steps[step].turn < t) ++step;
      const bool runs = step < lifetimes_.steps.size() && lifetimes_.steps[step].turn == t &&
                        lifetimes_.steps[step].kind == StepKind::kRun;
      for (uint32_t v : lifetimes_.values.makes(t)) {
        if (const uint32_t state = state_of(v); state != kNoValue)
          of_[v] = runs ? ++now_[state] : now_[state];
      }
    }
    for (const StepInfo& info : lifetimes_.steps) {
      if (info.kind == StepKind::kCopy) see(info.value, "an output");
      if (info.kind != StepKind::kStore) continue;
      see(info.value, "a store");
      ++now_[info.state];
      of_[info.value] = state_of(info.value) == kNoValue ? now_[info.state] : of_[info.value];
    }
    check_end();
    return std::move(wrong_);
  }

 private:
  uint32_t state_of(uint32_t value) const {
    if (value == kNoValue) return kNoValue;
    const Location& location = lifetimes_.locations[value];
    if (location.where != Where::kConstant) return kNoValue;
    return lifetimes_.values[location.index].edge->persistent ? location.index : kNoValue;
  }
  void see(uint32_t value, const std::string& who) {
    const uint32_t state = state_of(value);
    if (state != kNoValue && of_[value] != now_[state])
      wrong_.push_back(fmt::format("{} reads state '{}' after it was overwritten", who,
                                   lifetimes_.values[state].edge->name));
  }
  void check_end() {
    const std::span<const uint32_t> states = lifetimes_.values.states();
    const std::span<const uint32_t> next = lifetimes_.values.next_states();
    for (size_t i = 0; i < states.size(); ++i) {
      const bool unchanged = next[i] == states[i] && now_[states[i]] == 0;
      if (!unchanged && (now_[states[i]] != 1 || of_[next[i]] != 1))
        wrong_.push_back(fmt::format("state '{}' does not get its next value once",
                                     lifetimes_.values[states[i]].edge->name));
    }
  }

  const Lifetimes& lifetimes_;
  std::vector<int> now_, of_;  // by value: of a state's memory, and which of its contents a value is
  std::vector<std::string> wrong_;
};

}  // namespace

Schedule settle_updates(const Graph& graph, FactsTable& facts, const Schedule& order,
                        const LifetimeOptions& options, TransientMemory& memory) {
  return Settler(graph, facts, order, options, memory).run();
}

std::vector<std::string> check_updates(const Lifetimes& lifetimes) {
  return Contents(lifetimes).run();
}

}  // namespace plimsoll
