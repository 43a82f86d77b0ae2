// A graph at one concrete shape as plain numbers: what orders and recomputation are searched on, where the
// real analysis (lifetimes.h) would be too slow to ask thousands of times. It knows views, results that
// overwrite inputs, states that are updated in place, outputs in the caller's memory, and scratch; pieces of
// Concats are copies here. What was found is analyzed and placed for real before it is used.
#pragma once

#include "prepare/lifetimes.h"
#include "prepare/node_aliases.h"

namespace plimsoll {

// Node numbers (TurnModel::nodes), each as often as it runs. A turn reads the newest value of each edge.
using Turns = std::pmr::vector<uint32_t>;

// Picoseconds on one core of the kind that we measure on; only ratios matter (docs/recompute.md).
int64_t estimated_time(const Cost& cost);

struct TurnModel {
  static constexpr uint32_t kNone = ~0u;
  // Output `output` of the node may take the place of its input `input`: positions in the lists below.
  struct Overwrite {
    uint32_t output, input;
  };
  struct NodeInfo {
    const Node* node = nullptr;
    int64_t time = 0, operations = 0;
    int64_t scratch_bytes = 0;
    bool view = false;        // it makes no bytes of its own: its result is looked at in its first read
    bool repeatable = false;  // running it again gives the same, and nobody notices
    bool free = false;        // no step at all: a view, or what is known before
    uint32_t reads = 0, reads_end = 0, makes = 0, makes_end = 0, overwrites = 0, overwrites_end = 0;
  };
  struct EdgeInfo {
    const Edge* edge = nullptr;
    int64_t bytes = 0;  // 0 for what is not in the arena: inputs, constants, states
    bool state = false;
    bool output = false;             // of the graph: alive to the end
    bool callers = false;            // likewise, and in the caller's memory
    uint32_t next_of_state = kNone;  // the edge whose next value this is
  };

  // `natural`: the analysis of any order of the whole graph, which tells the scratch of each node.
  TurnModel(const Lifetimes& natural, FactsTable& facts, const LifetimeOptions& options,
            TransientMemory& memory);

  std::span<const uint32_t> reads(uint32_t n) const {
    return part(read_list, nodes[n].reads, nodes[n].reads_end);
  }
  std::span<const uint32_t> makes(uint32_t n) const {
    return part(make_list, nodes[n].makes, nodes[n].makes_end);
  }
  std::span<const Overwrite> overwrites(uint32_t n) const {
    return std::span<const Overwrite>(overwrite_list)
        .subspan(nodes[n].overwrites, nodes[n].overwrites_end - nodes[n].overwrites);
  }
  int64_t time_of(const Turns& turns) const;
  Schedule schedule(const Turns& turns, TransientMemory& memory) const;

  std::pmr::vector<NodeInfo> nodes;
  std::pmr::vector<EdgeInfo> edges;
  std::pmr::vector<uint32_t> read_list, make_list;  // numbers of edges
  std::pmr::vector<Overwrite> overwrite_list;
  Turns order;  // the natural one

 private:
  static std::span<const uint32_t> part(const std::pmr::vector<uint32_t>& list, uint32_t from, uint32_t to) {
    return std::span<const uint32_t>(list).subspan(from, to - from);
  }
};

// What turns make and read, and how many bytes are alive at each. Made once, used for many orders.
class LiveBytes {
 public:
  struct Value {
    uint32_t edge = 0;
    uint32_t made = 0;  // turn
    uint32_t last = 0;  // the last turn that reads it, itself or through a view; `made` if none does
    uint32_t storage = 0;
  };
  LiveBytes(const TurnModel& model, std::pmr::memory_resource* memory);

  void simulate(std::span<const uint32_t> turns);

  int64_t peak() const { return peak_; }
  uint32_t peak_turn() const { return peak_turn_; }
  std::span<const int64_t> live() const { return live_; }  // by turn
  std::span<const Value> values() const { return values_; }
  // Values that a turn reads, parallel to the model's list; kNone for what no turn makes.
  std::span<const uint32_t> reads(size_t turn) const {
    return std::span<const uint32_t>(read_values_)
        .subspan(read_begin_[turn], read_begin_[turn + 1] - read_begin_[turn]);
  }
  // The values of a turn are consecutive.
  uint32_t first_made(size_t turn) const { return first_made_[turn]; }

  static constexpr uint32_t kForever = TurnModel::kNone - 1;

 private:
  void number(std::span<const uint32_t> turns);
  void store(std::span<const uint32_t> turns);
  bool overwrite(uint32_t turn, uint32_t node, uint32_t output);
  void add_up(std::span<const uint32_t> turns);

  struct Storage {
    int64_t bytes;
    uint32_t from, last;
    bool callers;
  };
  const TurnModel& model_;
  int64_t peak_ = 0;
  uint32_t peak_turn_ = 0;
  std::pmr::vector<int64_t> live_;
  std::pmr::vector<Value> values_;
  std::pmr::vector<Storage> storages_;
  std::pmr::vector<uint32_t> read_values_, read_begin_, first_made_;
  std::pmr::vector<uint32_t> newest_;           // by edge
  std::pmr::vector<uint32_t> last_state_read_;  // by edge
};

}  // namespace plimsoll
