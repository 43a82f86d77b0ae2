#include "prepare/schedule.h"

#include <algorithm>

#include "graph/bodies.h"
#include "prepare/value_facts.h"

namespace plimsoll {
namespace {

// By node id: whether one of the wanted edges needs it.
std::pmr::vector<bool> needed_nodes(const Graph& graph, std::span<Edge* const> wanted,
                                    TransientMemory& memory) {
  std::pmr::vector<bool> nodes(graph.node_count(), false, memory.resource());
  std::pmr::vector<bool> edges(graph.edge_count(), false, memory.resource());
  for (const Edge* edge : wanted) edges[edge->id] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = *graph.nodes[n];
    const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](const Edge* edge) { return edge != nullptr && edges[edge->id]; });
    if (!needed) continue;
    nodes[node.id] = true;
    for (const Edge* edge : node.inputs) {
      if (edge != nullptr) edges[edge->id] = true;
    }
    if (!node.op->control_flow) continue;
    for (const Edge* edge : captured_edges(node)) edges[edge->id] = true;
  }
  return nodes;
}

}  // namespace

Schedule file_order(const Graph& graph, TransientMemory& memory, WantedOutputs wanted) {
  Schedule schedule(memory.resource());
  schedule.reserve(graph.nodes.size());
  std::pmr::vector<bool> needed(memory.resource());
  if (wanted) needed = needed_nodes(graph, *wanted, memory);
  for (const Node* node : graph.nodes) {
    if (!wanted || needed[node->id]) schedule.push_back({node, 0});
  }
  return schedule;
}

namespace {

// Of the nodes that can run, the one after which the least is alive; of equals the file's first.
class FrugalOrder {
 public:
  FrugalOrder(const Graph& graph, const FactsTable& facts, const Schedule& order, TransientMemory& memory,
              WantedOutputs wanted)
      : order_(order),
        facts_(facts),
        values_(graph, order, memory, wanted),
        waiting_(order.size(), 0, memory.resource()),
        readers_(values_.size(), 0, memory.resource()),
        readers_begin_(memory.resource()),
        reader_list_(memory.resource()),
        ready_(memory.resource()),
        result_(memory.resource()) {}

  Schedule run() {
    collect();
    for (size_t n = 0; n < waiting_.size(); ++n) {
      if (waiting_[n] == 0) ready_.push_back(static_cast<uint32_t>(n));
    }
    result_.reserve(order_.size());
    while (!ready_.empty()) take(best_ready());
    return std::move(result_);
  }

 private:
  template <typename F>
  void for_each_read(size_t turn, F&& f) {
    for (uint32_t v : values_.reads(turn)) f(v);
    for (uint32_t v : values_.captures(turn)) f(v);
  }
  void collect() {
    for (size_t n = 0; n < order_.size(); ++n) {
      for_each_read(n, [&](uint32_t v) {
        if (v == kNoValue) return;
        ++readers_[v];
        if (values_[v].made >= 0) ++waiting_[n];
      });
    }
    readers_begin_.assign(values_.size() + 1, 0);
    for (size_t v = 0; v < values_.size(); ++v) readers_begin_[v + 1] = readers_begin_[v] + readers_[v];
    reader_list_.resize(readers_begin_.back());
    std::pmr::vector<uint32_t> next(readers_begin_.begin(), readers_begin_.end(), readers_.get_allocator());
    for (size_t n = 0; n < order_.size(); ++n) {
      for_each_read(n, [&](uint32_t v) {
        if (v != kNoValue) reader_list_[next[v]++] = static_cast<uint32_t>(n);
      });
    }
    for (uint32_t v : values_.outputs()) ++readers_[v];
  }

  int64_t bytes(uint32_t value) const {
    const Facts& facts = facts_[values_[value].edge];
    if (values_[value].made < 0 || is_known(facts) || !facts.is_concrete()) return 0;
    return value_bytes(facts).value();
  }
  // How much more is alive after the node than before it.
  int64_t growth(size_t node) {
    int64_t sum = 0;
    for (uint32_t v : values_.makes(node)) {
      if (v != kNoValue) sum += bytes(v);
    }
    for_each_read(node, [&](uint32_t v) {
      if (v != kNoValue && readers_[v] == 1) sum -= bytes(v);
    });
    return sum;
  }
  size_t best_ready() {
    size_t best = 0;
    int64_t least = 0;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const int64_t grows = growth(ready_[i]);
      if (i == 0 || grows < least || (grows == least && ready_[i] < ready_[best])) best = i, least = grows;
    }
    return best;
  }
  void take(size_t index) {
    const uint32_t node = ready_[index];
    ready_[index] = ready_.back();
    ready_.pop_back();
    result_.push_back({order_[node].node, 0});
    for_each_read(node, [&](uint32_t v) {
      if (v != kNoValue) --readers_[v];
    });
    for (uint32_t v : values_.makes(node)) {
      if (v == kNoValue) continue;
      for (uint32_t r = readers_begin_[v]; r < readers_begin_[v + 1]; ++r) {
        if (--waiting_[reader_list_[r]] == 0) ready_.push_back(reader_list_[r]);
      }
    }
  }

  const Schedule& order_;
  const FactsTable& facts_;
  ScheduledValues values_;
  std::pmr::vector<uint32_t> waiting_;  // by node: values it reads that are not made yet
  std::pmr::vector<uint32_t> readers_;  // by value: how many have yet to read it
  std::pmr::vector<uint32_t> readers_begin_, reader_list_;
  std::pmr::vector<uint32_t> ready_;
  Schedule result_;
};

}  // namespace

Schedule frugal_order(const Graph& graph, const FactsTable& facts, const Schedule& order,
                      TransientMemory& memory, WantedOutputs wanted) {
  return FrugalOrder(graph, facts, order, memory, wanted).run();
}

EdgeNumbers::EdgeNumbers(const Graph& graph, TransientMemory& memory) : map_(memory.resource()) {
  if (graph.outer() != nullptr) return;
  table_ = memory.arena().array<uint32_t>(graph.edge_count());
  std::fill(table_.begin(), table_.end(), kNoValue);
}

uint32_t EdgeNumbers::operator[](const Edge* edge) const {
  if (!table_.empty()) return table_[edge->id];
  const auto found = map_.find(edge->id);
  return found == map_.end() ? kNoValue : found->second;
}

void EdgeNumbers::set(const Edge* edge, uint32_t number) {
  if (table_.empty()) {
    map_[edge->id] = number;
  } else {
    table_[edge->id] = number;
  }
}

ScheduledValues::ScheduledValues(const Graph& graph, const Schedule& schedule, TransientMemory& memory,
                                 WantedOutputs wanted, UpdatedStates updated)
    : values_(memory.resource()),
      numbers_(memory.resource()),
      begins_(memory.resource()),
      inputs_(memory.resource()),
      outputs_(memory.resource()),
      states_(memory.resource()),
      newest_(graph, memory) {
  begins_.reserve(schedule.size() * 3 + 1);
  begins_.push_back(0);
  const auto end_part = [&] { begins_.push_back(static_cast<uint32_t>(numbers_.size())); };
  for (const Edge* edge : graph.inputs) inputs_.push_back(newest(edge));
  for (const Edge* edge : updated) states_.push_back(newest(edge));
  for (size_t t = 0; t < schedule.size(); ++t) {
    const Node& node = *schedule[t].node;
    const auto now = static_cast<int64_t>(t);
    const auto read = [&](const Edge* edge) {
      numbers_.push_back(edge == nullptr ? kNoValue : newest(edge));
      if (edge != nullptr) use(numbers_.back(), now);
    };
    for (const Edge* edge : node.inputs) read(edge);
    end_part();
    if (node.op->control_flow) {
      for (const Edge* edge : captured_edges(node)) read(edge);
    }
    end_part();
    for (const Edge* edge : node.outputs) numbers_.push_back(edge == nullptr ? kNoValue : add(edge, now));
    end_part();
  }
  for (const Edge* edge : wanted.value_or(graph.outputs.span())) {
    outputs_.push_back(newest(edge));
    use(outputs_.back(), ScheduledValue::kForever);
  }
}

bool ScheduledValues::is_next(uint32_t value, uint32_t state) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == state && next_states()[i] == value) return true;
  }
  return false;
}

uint32_t ScheduledValues::newest(const Edge* edge) {
  const uint32_t known = newest_[edge];
  return known != kNoValue ? known : add(edge, ScheduledValue::kBefore);
}

uint32_t ScheduledValues::add(const Edge* edge, int64_t made) {
  const auto value = static_cast<uint32_t>(values_.size());
  values_.push_back({edge, made, ScheduledValue::kNever});
  newest_.set(edge, value);
  return value;
}

}  // namespace plimsoll
