// The order in which the nodes of a graph run, and the values they make: apart from the graph, because a node
// may run more than once (recomputation) and orders differ in what they keep alive.
#pragma once

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/infer.h"
#include "memory/transient_memory.h"

namespace plimsoll {

// One run of a node; instance 0 is its first.
struct Turn {
  const Node* node = nullptr;
  uint32_t instance = 0;
};
using Schedule = std::pmr::vector<Turn>;

// What a run is to make: all outputs of a graph, or some of the root's.
using WantedOutputs = std::optional<std::span<Edge* const>>;

// The persistent edges whose next values are the last of what is wanted.
using UpdatedStates = std::span<Edge* const>;

// With `wanted`, only the nodes that these need.
Schedule file_order(const Graph& graph, TransientMemory& memory, WantedOutputs wanted = {});
// Takes, of the nodes of an order that can run, the one after which the least is alive. Sizes must be
// constants.
Schedule frugal_order(const Graph& graph, const FactsTable& facts, const Schedule& order,
                      TransientMemory& memory, WantedOutputs wanted = {});

inline constexpr uint32_t kNoValue = ~0u;

// A number for each edge, kNoValue at first: a table for a whole model, a map for the few edges of a body.
class EdgeNumbers {
 public:
  EdgeNumbers(const Graph& graph, TransientMemory& memory);
  uint32_t operator[](const Edge* edge) const;
  void set(const Edge* edge, uint32_t number);

 private:
  std::span<uint32_t> table_;
  std::pmr::unordered_map<uint32_t, uint32_t> map_;
};

// A value of the schedule: what one turn makes, or an edge that is there from the start.
struct ScheduledValue {
  const Edge* edge = nullptr;
  int64_t made = kBefore;     // the turn
  int64_t last_use = kNever;  // the turn, or kForever for outputs of the graph
  static constexpr int64_t kBefore = -1, kNever = -1, kForever = int64_t{1} << 60;
};

// Who reads and makes what. A turn reads the newest value of each edge. Everything lives in `memory`.
class ScheduledValues {
 public:
  ScheduledValues(const Graph& graph, const Schedule& schedule, TransientMemory& memory,
                  WantedOutputs wanted = {}, UpdatedStates updated = {});

  std::span<ScheduledValue> all() { return values_; }
  ScheduledValue& operator[](uint32_t value) { return values_[value]; }
  const ScheduledValue& operator[](uint32_t value) const { return values_[value]; }
  size_t size() const { return values_.size(); }
  // Parallel to the node's inputs and outputs; kNoValue where absent.
  std::span<const uint32_t> reads(size_t turn) const { return part(turn, 0); }
  std::span<const uint32_t> makes(size_t turn) const { return part(turn, 2); }
  // What the node's bodies use of this graph and of those around it.
  std::span<const uint32_t> captures(size_t turn) const { return part(turn, 1); }
  std::span<const uint32_t> inputs() const { return inputs_; }    // of the graph
  std::span<const uint32_t> outputs() const { return outputs_; }  // likewise
  // The persistent edges that are updated, as they are before the run; their next values are the last
  // outputs.
  std::span<const uint32_t> states() const { return states_; }
  std::span<const uint32_t> next_states() const { return outputs().last(states_.size()); }
  bool is_next(uint32_t value, uint32_t state) const;  // of that state
  void use(uint32_t value, int64_t at) { values_[value].last_use = std::max(values_[value].last_use, at); }

 private:
  std::span<const uint32_t> part(size_t turn, size_t which) const {
    const size_t at = turn * 3 + which;
    return std::span<const uint32_t>(numbers_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }
  uint32_t newest(const Edge* edge);
  uint32_t add(const Edge* edge, int64_t made);

  std::pmr::vector<ScheduledValue> values_;
  std::pmr::vector<uint32_t> numbers_, begins_, inputs_, outputs_, states_;
  EdgeNumbers newest_;
};

}  // namespace plimsoll
