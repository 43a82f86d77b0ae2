#include "prepare/recompute_search.h"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr uint32_t kNone = TurnModel::kNone;

}  // namespace

TurnPlan RecomputeSearch::measured(Turns turns) {
  live_.simulate(turns);
  return {live_.peak(), model_.time_of(turns), std::move(turns)};
}

std::pmr::vector<int64_t> RecomputeSearch::price_ladder(std::span<const uint32_t> turns,
                                                        const Segments& segments, size_t count) {
  // Time to make a byte of what crosses the middle: quantiles by bytes.
  std::pmr::vector<std::pair<int64_t, int64_t>> densities(memory_);
  int64_t total = 0;
  for (uint32_t v = 0; v < live_.values().size(); ++v) {
    const LiveBytes::Value& value = live_.values()[v];
    const int64_t bytes = model_.edges[value.edge].bytes;
    if (value.made >= segments.middle() || !segments.is_needed(v) || bytes == 0) continue;
    densities.emplace_back(model_.nodes[turns[value.made]].time / bytes + 1, bytes);
    total += bytes;
  }
  std::sort(densities.begin(), densities.end());
  std::pmr::vector<int64_t> prices(memory_);
  int64_t sum = 0;
  size_t next = 1;
  for (const auto& [density, bytes] : densities) {
    sum += bytes;
    while (next < count && sum >= total / static_cast<int64_t>(count) * static_cast<int64_t>(next)) {
      prices.push_back(density * 3 / 2);
      ++next;
    }
  }
  if (!densities.empty()) prices.push_back(densities.back().first * 50);
  prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
  return prices;
}

// By turn before the middle: whether it runs again.
std::pmr::vector<bool> RecomputeSearch::choose_again(std::span<const uint32_t> turns,
                                                     const Segments& segments, std::span<const uint32_t> cuts,
                                                     int64_t price) {
  const std::span<const LiveBytes::Value> values = live_.values();
  const uint32_t middle = segments.middle();
  const uint32_t value_count = live_.first_made(middle);
  const auto need = [](uint32_t value) { return 2 + value; };
  const auto again = [&](uint32_t turn) { return 2 + value_count + turn; };
  const auto is_held = [&](uint32_t v) {
    return std::any_of(cuts.begin(), cuts.end(), [&](uint32_t cut) { return segments.crosses(v, cut); });
  };
  cut_.reset(2 + value_count + middle);
  std::pmr::vector<bool> seen(value_count, false, memory_), seen_turn(middle, false, memory_);
  std::pmr::vector<uint32_t> stack(memory_);
  const auto visit = [&](uint32_t v) {
    if (!seen[v]) seen[v] = true, stack.push_back(v);
  };
  for (uint32_t t = middle + 1; t < turns.size(); ++t) {
    for (const uint32_t v : live_.reads(t)) {
      if (v == kNone || v >= value_count) continue;
      if (!seen[v]) cut_.add_arc(0, need(v), plan::MinCut::kNever);
      visit(v);
    }
  }
  while (!stack.empty()) {
    const uint32_t v = stack.back();
    stack.pop_back();
    const uint32_t turn = values[v].made;
    const TurnModel::NodeInfo& node = model_.nodes[turns[turn]];
    const int64_t bytes = model_.edges[values[v].edge].bytes;
    if (!node.view && (bytes == 0 || is_held(v))) continue;
    cut_.add_arc(need(v), again(turn), node.view ? plan::MinCut::kNever : price * bytes);
    if (seen_turn[turn]) continue;
    seen_turn[turn] = true;
    cut_.add_arc(again(turn), 1, node.repeatable ? std::max<int64_t>(node.time, 1) : plan::MinCut::kNever);
    for (const uint32_t u : live_.reads(turn)) {
      if (u == kNone) continue;
      cut_.add_arc(again(turn), need(u), plan::MinCut::kNever);
      visit(u);
    }
  }
  std::pmr::vector<bool> result(middle, false, memory_);
  if (cut_.solve() >= plan::MinCut::kNever) return result;
  for (uint32_t t = 0; t < middle; ++t) result[t] = seen_turn[t] && cut_.is_with_source(again(t));
  return result;
}

Turns RecomputeSearch::with_again(std::span<const uint32_t> turns, uint32_t middle,
                                  const std::pmr::vector<bool>& again) {
  Turns result(memory_);
  result.reserve(turns.size() + middle);
  std::pmr::vector<bool> done(middle, false, memory_);  // by turn: ran again already, or need not
  std::pmr::vector<uint32_t> wave(memory_), stack(memory_);
  // Whether the turn must run again for its values: a view only if what it looks at does.
  const auto runs_again = [&](uint32_t turn) {
    while (model_.nodes[turns[turn]].view && again[turn]) {
      const uint32_t base = live_.reads(turn)[0];
      if (base == kNone) return false;
      turn = live_.values()[base].made;
      if (turn >= middle) return false;
    }
    return static_cast<bool>(again[turn]);
  };
  const auto demand = [&](uint32_t value) {
    if (value == kNone) return;
    const uint32_t turn = live_.values()[value].made;
    if (turn >= middle || done[turn] || !runs_again(turn)) return;
    done[turn] = true;
    stack.push_back(turn);
  };
  for (uint32_t t = 0; t < turns.size(); ++t) {
    if (t > middle) {
      wave.clear();
      for (const uint32_t v : live_.reads(t)) demand(v);
      while (!stack.empty()) {
        wave.push_back(stack.back());
        stack.pop_back();
        for (const uint32_t v : live_.reads(wave.back())) demand(v);
      }
      std::sort(wave.begin(), wave.end());
      for (const uint32_t turn : wave) result.push_back(turns[turn]);
    }
    result.push_back(turns[t]);
  }
  return result;
}

std::pmr::vector<TurnPlan> RecomputeSearch::drop(const TurnPlan& plan, size_t lengths, size_t prices) {
  std::pmr::vector<TurnPlan> found(memory_);
  live_.simulate(plan.turns);
  const uint32_t middle = live_.peak_turn();
  std::pmr::vector<std::pmr::vector<uint32_t>> chains(memory_);
  std::pmr::vector<std::pmr::vector<bool>> choices(memory_);
  {
    const Segments segments(model_, live_, plan.turns, middle, memory_);
    const std::pmr::vector<int64_t> ladder = price_ladder(plan.turns, segments, prices);
    int64_t parts = 1;
    for (size_t i = 0; i < lengths; ++i, parts = parts * 3 / 2 + 1) {
      std::pmr::vector<uint32_t> cuts = segments.cuts(segments.needed_bytes() / parts);
      if (std::find(chains.begin(), chains.end(), cuts) != chains.end()) continue;
      chains.push_back(cuts);
      for (const int64_t price : ladder) {
        std::pmr::vector<bool> again = choose_again(plan.turns, segments, cuts, price);
        if (std::find(choices.begin(), choices.end(), again) == choices.end())
          choices.push_back(std::move(again));
      }
    }
  }
  std::pmr::vector<Turns> lists(memory_);
  for (const std::pmr::vector<bool>& again : choices) lists.push_back(with_again(plan.turns, middle, again));
  for (Turns& turns : lists) found.push_back(measured(std::move(turns)));
  return found;
}

TurnPlan RecomputeSearch::drop_nodes(const TurnPlan& plan, uint32_t middle,
                                     const std::pmr::vector<bool>& nodes) {
  live_.simulate(plan.turns);
  std::pmr::vector<bool> again(middle, false, memory_);
  for (uint32_t t = 0; t < middle; ++t) {
    const TurnModel::NodeInfo& node = model_.nodes[plan.turns[t]];
    again[t] = node.view || (nodes[plan.turns[t]] && node.repeatable);
  }
  return measured(without_useless(with_again(plan.turns, middle, again)));
}

// Takes out runs again whose results nobody reads.
Turns RecomputeSearch::without_useless(Turns turns) {
  live_.simulate(turns);
  std::pmr::vector<bool> ran(model_.nodes.size(), false, memory_), keeps(turns.size(), true, memory_);
  std::pmr::vector<bool> read(live_.values().size(), false, memory_);
  for (uint32_t t = 0; t < turns.size(); ++t) {
    keeps[t] = !ran[turns[t]];
    ran[turns[t]] = true;
  }
  for (size_t t = turns.size(); t-- > 0;) {
    const uint32_t first = live_.first_made(t);
    for (uint32_t m = 0; m < model_.makes(turns[t]).size(); ++m) keeps[t] = keeps[t] || read[first + m];
    if (!keeps[t]) continue;
    for (const uint32_t v : live_.reads(t)) {
      if (v != kNone) read[v] = true;
    }
  }
  // A view of what did not run again in between is there already.
  std::pmr::vector<uint32_t> looked_at(model_.nodes.size(), kNone, memory_);
  for (size_t t = 0; t < turns.size(); ++t) {
    if (!model_.nodes[turns[t]].view) continue;
    const uint32_t base = live_.reads(t)[0];
    if (base != kNone && looked_at[turns[t]] == base) keeps[t] = false;
    looked_at[turns[t]] = base;
  }
  size_t kept = 0;
  for (size_t t = 0; t < turns.size(); ++t) {
    if (keeps[t]) turns[kept++] = turns[t];
  }
  turns.resize(kept);
  return turns;
}

// What each run again would cost in bytes to be spared, and save in time. `live_` has simulated the turns.
std::pmr::vector<RecomputeSearch::Move> RecomputeSearch::moves(std::span<const uint32_t> turns) {
  const std::span<const LiveBytes::Value> values = live_.values();
  std::pmr::vector<uint32_t> readers(values.size(), 0, memory_);
  std::pmr::vector<uint32_t> before(model_.nodes.size(), kNone, memory_);  // by node: its latest turn
  std::pmr::vector<bool> is_again(turns.size(), false, memory_);
  for (uint32_t t = 0; t < turns.size(); ++t) {
    for (const uint32_t v : live_.reads(t)) {
      if (v != kNone) ++readers[v];
    }
  }
  std::pmr::vector<Move> result(memory_);
  std::pmr::vector<uint32_t> stack(memory_), lowered(memory_);
  for (uint32_t t = 0; t < turns.size(); ++t) {
    const uint32_t earlier = std::exchange(before[turns[t]], t);
    is_again[t] = earlier != kNone;
    if (earlier == kNone || model_.nodes[turns[t]].view) continue;
    Move move{t, 0, 0, t};
    for (uint32_t m = 0; m < model_.makes(turns[t]).size(); ++m) {
      if (readers[live_.first_made(t) + m] == 0) continue;
      const LiveBytes::Value& old = values[live_.first_made(earlier) + m];
      move.bytes += model_.edges[old.edge].bytes;
      move.from = std::min(move.from, std::min(old.last, t));
    }
    // With it goes what runs again for it alone.
    stack.assign(1, t);
    lowered.clear();
    while (!stack.empty()) {
      const uint32_t turn = stack.back();
      stack.pop_back();
      move.saved += model_.nodes[turns[turn]].time;
      for (const uint32_t v : live_.reads(turn)) {
        if (v == kNone || !is_again[values[v].made]) continue;
        lowered.push_back(v);
        if (--readers[v] > 0) continue;
        const uint32_t first = live_.first_made(values[v].made);
        bool useless = true;
        for (uint32_t m = 0; m < model_.makes(turns[values[v].made]).size(); ++m)
          useless &= readers[first + m] == 0;
        if (useless) stack.push_back(values[v].made);
      }
    }
    for (const uint32_t v : lowered) ++readers[v];
    result.push_back(move);
  }
  return result;
}

TurnPlan RecomputeSearch::keep(const TurnPlan& plan, int64_t most_bytes) {
  TurnPlan best{plan.peak_bytes, plan.time, Turns(plan.turns, memory_)};
  std::pmr::vector<int64_t> live(memory_);
  size_t most_moves = ~size_t{0};
  while (true) {
    live_.simulate(best.turns);
    std::pmr::vector<Move> candidates = moves(best.turns);
    std::stable_sort(candidates.begin(), candidates.end(), [](const Move& a, const Move& b) {
      return static_cast<double>(a.saved) / static_cast<double>(a.bytes + 64) >
             static_cast<double>(b.saved) / static_cast<double>(b.bytes + 64);
    });
    live.assign(live_.live().begin(), live_.live().end());
    std::pmr::vector<bool> gone(best.turns.size(), false, memory_);
    size_t moved = 0;
    for (const Move& move : candidates) {
      if (moved == most_moves) break;
      const auto begin = live.begin() + std::min(move.from + 1, move.turn), end = live.begin() + move.turn;
      if (std::any_of(begin, end, [&](int64_t bytes) { return bytes + move.bytes > most_bytes; })) continue;
      std::for_each(begin, end, [&](int64_t& bytes) { bytes += move.bytes; });
      gone[move.turn] = true;
      ++moved;
    }
    if (moved == 0) return best;
    Turns turns(memory_);
    for (size_t t = 0; t < best.turns.size(); ++t) {
      if (!gone[t]) turns.push_back(best.turns[t]);
    }
    TurnPlan next = measured(without_useless(std::move(turns)));
    if (next.peak_bytes <= std::max(most_bytes, best.peak_bytes) && next.time < best.time) {
      best = std::move(next);
    } else if (moved == 1) {
      return best;
    } else {
      most_moves = moved / 2;
    }
  }
}

}  // namespace plimsoll
