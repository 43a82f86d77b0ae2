// Recomputation: nodes run again instead of having their results kept, where a limit asks for it
// (docs/recompute.md). What is found does not depend on the limit, which only chooses from it: more bytes
// never give a slower plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prepare/turn_model.h"

namespace plimsoll {

// What a schedule runs more than once, as plain data.
struct Recomputation {
  struct Again {
    const Node* node = nullptr;
    uint32_t times = 0;  // beyond the first
  };
  std::vector<Again> nodes;      // in the graph's order; without views, which cost nothing
  int64_t extra_operations = 0;  // arithmetic, as the operators tell it
  int64_t operations = 0;        // of running each node once
  double extra_time = 0;         // estimated, as a share of the time of running each node once
  int64_t peak_bytes = 0;        // of the planned arena
  int64_t saved_bytes = 0;       // against the smallest arena that runs each node once
  bool found_no_room = false;    // the search for what to run again did not fit the limit itself
  bool empty() const { return nodes.empty(); }
};
Recomputation recomputation_of(const TurnModel& model, const Schedule& schedule);

// Plans from the largest to the smallest arena, each slower than the one before it. Bytes are live bytes of
// the model, which the placed ones are not below by much.
class RecomputeFront {
 public:
  struct Point {
    int64_t live_bytes = 0;
    int64_t time = 0;  // estimated_time of all turns
    Turns turns;
  };
  // From the natural order of the model and another one. The work is bounded by the number of turns.
  RecomputeFront(const TurnModel& model, const Turns& another, TransientMemory& memory);
  std::span<const Point> points() const { return points_; }
  // The live bytes of the natural order.
  int64_t natural_bytes() const { return natural_bytes_; }

 private:
  std::pmr::vector<Point> points_;
  int64_t natural_bytes_ = 0;
};

// The natural order with these nodes run again after turn `middle` of it, for what is read there: what the
// memory optimizer of training asks for by name. `nodes` is by node number of the model.
Turns recompute_nodes(const TurnModel& model, uint32_t middle, const std::pmr::vector<bool>& nodes,
                      TransientMemory& memory);

}  // namespace plimsoll
