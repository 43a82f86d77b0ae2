// Orders in which nodes run again, to keep less in between. Two moves, each of plain data to plain data:
// `drop` lets go of values at the turn where the most is alive and makes them again when they are read;
// `keep` takes back those runs that are not worth it. Every list of turns that starts from a valid order and
// only adds runs of nodes that ran before is valid, whatever is chosen here: it decides bytes and time alone.
#pragma once

#include "plan/min_cut.h"
#include "prepare/recompute_segments.h"
#include "prepare/turn_model.h"

namespace plimsoll {

struct TurnPlan {
  int64_t peak_bytes = 0;
  int64_t time = 0;
  Turns turns;
};

class RecomputeSearch {
 public:
  RecomputeSearch(const TurnModel& model, std::pmr::memory_resource* memory)
      : model_(model), memory_(memory), live_(model, memory), cut_(memory) {}

  TurnPlan measured(Turns turns);

  // Variants of `plan` that let go of values at its peak: for chains of several lengths, each with several
  // prices of a byte, what to hold is a minimum cut between the price of holding and the time to make it
  // again from what the cuts of the chain hold.
  std::pmr::vector<TurnPlan> drop(const TurnPlan& plan, size_t lengths, size_t prices);

  // The same with what is to be made again given by node numbers, for values made before `middle` and read
  // after it.
  TurnPlan drop_nodes(const TurnPlan& plan, uint32_t middle, const std::pmr::vector<bool>& nodes);

  // Runs no more often what fits below `most_bytes` without, dearest per byte first.
  TurnPlan keep(const TurnPlan& plan, int64_t most_bytes);

 private:
  struct Move {
    uint32_t turn;
    int64_t bytes, saved;
    uint32_t from;  // the bytes are alive from this turn up to the other
  };
  std::pmr::vector<int64_t> price_ladder(std::span<const uint32_t> turns, const Segments& segments,
                                         size_t count);
  std::pmr::vector<bool> choose_again(std::span<const uint32_t> turns, const Segments& segments,
                                      std::span<const uint32_t> cuts, int64_t price);
  Turns with_again(std::span<const uint32_t> turns, uint32_t middle, const std::pmr::vector<bool>& again);
  Turns without_useless(Turns turns);
  std::pmr::vector<Move> moves(std::span<const uint32_t> turns);

  const TurnModel& model_;
  std::pmr::memory_resource* memory_;
  LiveBytes live_;
  plan::MinCut cut_;
};

}  // namespace plimsoll
