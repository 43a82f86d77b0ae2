#include "prepare/turn_model.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/bodies.h"

namespace plimsoll {

int64_t estimated_time(const Cost& cost) {
  // 80 thousand million operations and twenty thousand million bytes a second: what a step of a GPT took of
  // both, on one thread of a Zen 4 (docs/recompute.md).
  constexpr int64_t kPerOperation = 12, kPerByte = 50, kPerTurn = 1'000'000;
  return checked_add(
      checked_add(checked_mul(cost.operations, kPerOperation), checked_mul(cost.bytes, kPerByte)), kPerTurn);
}

namespace {

constexpr uint32_t kNone = TurnModel::kNone;

// Drawing again gives the same numbers (ops/random_source.h), except in bodies, which draw anew at every
// turn. Operators of the caller may have a memory of their own.
bool has_random_bodies(const Node& node) {
  const std::vector<Graph*> bodies = bodies_of(node);
  return std::any_of(bodies.begin(), bodies.end(), [](const Graph* body) { return has_random_nodes(*body); });
}

bool is_custom(const Node& node) {
  Graph* root = node.graph;
  while (root->outer() != nullptr) root = root->outer();
  return std::find(root->custom_ops.begin(), root->custom_ops.end(), node.op) != root->custom_ops.end();
}

class ModelBuilder {
 public:
  ModelBuilder(TurnModel& model, const Lifetimes& natural, FactsTable& facts, TransientMemory& memory)
      : model_(model),
        natural_(natural),
        facts_(facts),
        aliases_(*natural.graph, facts, memory),
        edge_number_(natural.graph->edge_count(), kNone, memory.resource()),
        scratch_(natural.schedule.size(), 0, memory.resource()) {}

  void build(const LifetimeOptions& options) {
    for (const StepInfo& step : natural_.steps) {
      if (step.kind != StepKind::kRun) continue;
      for (const uint32_t buffer : {step.scratch, step.nested})
        if (buffer != StepInfo::kNone) scratch_[step.turn] += natural_.buffers[buffer].size.value();
    }
    for (uint32_t t = 0; t < natural_.schedule.size(); ++t) add_node(t);
    const std::span<Edge* const> outputs = options.wanted.value_or(natural_.graph->outputs.span());
    for (const Edge* output : outputs) {
      TurnModel::EdgeInfo& edge = model_.edges[number(output)];
      edge.output = true;
      edge.callers = edge.bytes > 0;
    }
    const std::span<Edge* const> next = outputs.last(options.updated.size());
    for (size_t i = 0; i < next.size(); ++i) {
      const uint32_t state = number(options.updated[i]);
      TurnModel::EdgeInfo& edge = model_.edges[number(next[i])];
      edge.callers = false;
      edge.next_of_state = state;
    }
  }

 private:
  uint32_t number(const Edge* edge) {
    uint32_t& number = edge_number_[edge->id];
    if (number != kNone) return number;
    number = static_cast<uint32_t>(model_.edges.size());
    TurnModel::EdgeInfo info;
    info.edge = edge;
    info.state = edge->persistent;
    model_.edges.push_back(info);
    return number;
  }

  int64_t bytes_of(const Edge* edge) const {
    const Facts& facts = facts_[edge];
    if (!facts.is_concrete() || !is_static(facts)) return 0;
    return round_up(value_bytes(facts).value(), 64);
  }

  void add_node(uint32_t turn) {
    const Node& node = *natural_.schedule[turn].node;
    TurnModel::NodeInfo info;
    info.node = &node;
    info.view = aliases_.is_view(node);
    const bool known = aliases_.is_constant(node);
    info.free = info.view || known;
    info.scratch_bytes = scratch_[turn];
    const bool dynamic = aliases_.is_dynamic(node);
    info.repeatable = !dynamic && !is_custom(node) && !has_random_bodies(node);
    if (!info.free && !dynamic) {
      const std::vector<Facts> inputs = aliases_.gather(node.inputs);
      std::vector<Facts> outputs = aliases_.gather(node.outputs);
      const Cost cost = cost_of(NodeContext(node, inputs, outputs));
      info.time = estimated_time(cost);
      info.operations = cost.operations;
    }
    info.reads = info.makes = info.overwrites = 0;
    list_edges(node, known, info);
    model_.order.push_back(static_cast<uint32_t>(model_.nodes.size()));
    model_.nodes.push_back(info);
  }

  size_t viewed_input(const Node& node) {
    const std::span<const Alias> list = aliases_.of(node);
    return std::find_if(list.begin(), list.end(), [](const Alias& a) { return a.kind == AliasKind::kView; })
        ->input;
  }

  void list_edges(const Node& node, bool known, TurnModel::NodeInfo& info) {
    auto& reads = model_.read_list;
    auto& makes = model_.make_list;
    info.reads = static_cast<uint32_t>(reads.size());
    info.makes = static_cast<uint32_t>(makes.size());
    info.overwrites = static_cast<uint32_t>(model_.overwrite_list.size());
    std::vector<uint32_t> read_at(node.inputs.size(), kNone), made_at(node.outputs.size(), kNone);
    const auto read = [&](const Edge* edge) { reads.push_back(number(edge)); };
    // Of a view, what it looks at comes first.
    if (info.view) read(node.inputs[viewed_input(node)]);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == nullptr) continue;
      read_at[i] = static_cast<uint32_t>(reads.size()) - info.reads;
      read(node.inputs[i]);
    }
    if (node.op->control_flow != nullptr)
      for (const Edge* edge : captured_edges(node)) read(edge);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == nullptr) continue;
      made_at[o] = static_cast<uint32_t>(makes.size()) - info.makes;
      makes.push_back(number(node.outputs[o]));
      if (!known && !info.view) model_.edges[makes.back()].bytes = bytes_of(node.outputs[o]);
    }
    if (!info.free) {
      for (const Alias& alias : aliases_.of(node)) {
        if (alias.kind != AliasKind::kOverwrite || alias.input >= read_at.size()) continue;
        if (read_at[alias.input] == kNone || made_at[alias.output] == kNone) continue;
        model_.overwrite_list.push_back({made_at[alias.output], read_at[alias.input]});
      }
    }
    info.reads_end = static_cast<uint32_t>(reads.size());
    info.makes_end = static_cast<uint32_t>(makes.size());
    info.overwrites_end = static_cast<uint32_t>(model_.overwrite_list.size());
  }

  TurnModel& model_;
  const Lifetimes& natural_;
  FactsTable& facts_;
  NodeAliases aliases_;
  std::pmr::vector<uint32_t> edge_number_;  // by edge id
  std::pmr::vector<int64_t> scratch_;       // by turn
};

}  // namespace

TurnModel::TurnModel(const Lifetimes& natural, FactsTable& facts, const LifetimeOptions& options,
                     TransientMemory& memory)
    : nodes(memory.resource()),
      edges(memory.resource()),
      read_list(memory.resource()),
      make_list(memory.resource()),
      overwrite_list(memory.resource()),
      order(memory.resource()) {
  ModelBuilder(*this, natural, facts, memory).build(options);
}

int64_t TurnModel::time_of(const Turns& turns) const {
  int64_t sum = 0;
  for (const uint32_t n : turns) sum = checked_add(sum, nodes[n].time);
  return sum;
}

Schedule TurnModel::schedule(const Turns& turns, TransientMemory& memory) const {
  Schedule schedule(memory.resource());
  schedule.reserve(turns.size());
  std::pmr::vector<uint32_t> count(nodes.size(), 0, memory.resource());
  for (const uint32_t n : turns) schedule.push_back({nodes[n].node, count[n]++});
  return schedule;
}

LiveBytes::LiveBytes(const TurnModel& model, std::pmr::memory_resource* memory)
    : model_(model),
      live_(memory),
      values_(memory),
      storages_(memory),
      read_values_(memory),
      read_begin_(memory),
      first_made_(memory),
      newest_(memory) {}

void LiveBytes::simulate(std::span<const uint32_t> turns) {
  number(turns);
  store(turns);
  add_up(turns);
}

void LiveBytes::number(std::span<const uint32_t> turns) {
  values_.clear();
  read_values_.clear();
  read_begin_.clear();
  first_made_.clear();
  newest_.assign(model_.edges.size(), kNone);
  for (uint32_t t = 0; t < turns.size(); ++t) {
    read_begin_.push_back(static_cast<uint32_t>(read_values_.size()));
    for (const uint32_t edge : model_.reads(turns[t])) {
      const uint32_t value = newest_[edge];
      read_values_.push_back(value);
      if (value != kNone) values_[value].last = t;
    }
    first_made_.push_back(static_cast<uint32_t>(values_.size()));
    for (const uint32_t edge : model_.makes(turns[t])) {
      newest_[edge] = static_cast<uint32_t>(values_.size());
      values_.push_back({edge, t, t, kNone});
    }
  }
  read_begin_.push_back(static_cast<uint32_t>(read_values_.size()));
  for (uint32_t e = 0; e < model_.edges.size(); ++e) {
    if (model_.edges[e].output && newest_[e] != kNone) values_[newest_[e]].last = kForever;
  }
  // What looks at a value uses it for as long as it is used itself.
  for (size_t t = turns.size(); t-- > 0;) {
    if (!model_.nodes[turns[t]].view) continue;
    const uint32_t base = reads(t)[0];
    if (base == kNone) continue;
    for (uint32_t m = 0; m < model_.makes(turns[t]).size(); ++m)
      values_[base].last = std::max(values_[base].last, values_[first_made_[t] + m].last);
  }
}

bool LiveBytes::overwrite(uint32_t turn, uint32_t node, uint32_t output) {
  const std::span<const uint32_t> read = reads(turn);
  Value& made = values_[first_made_[turn] + output];
  for (const TurnModel::Overwrite& may : model_.overwrites(node)) {
    if (may.output != output) continue;
    const uint32_t edge = model_.reads(node)[may.input];
    // Updates are moved behind the last reader of the old value (updates.h).
    if (model_.edges[edge].state && model_.edges[made.edge].next_of_state == edge) {
      made.storage = kNone;
      return true;
    }
    if (read[may.input] == kNone) continue;
    const uint32_t storage = values_[read[may.input]].storage;
    if (storage == kNone || storages_[storage].last > turn) continue;
    if (storages_[storage].bytes != model_.edges[made.edge].bytes) continue;
    const auto in_it = [&](uint32_t v) { return v != kNone && values_[v].storage == storage; };
    size_t others = 0;
    for (size_t i = 0; i < read.size(); ++i) others += i != may.input && in_it(read[i]);
    for (uint32_t o = 0; o < output; ++o) others += in_it(first_made_[turn] + o);
    if (others > 0) continue;
    made.storage = storage;
    storages_[storage].last = std::max(storages_[storage].last, made.last);
    return true;
  }
  return false;
}

void LiveBytes::store(std::span<const uint32_t> turns) {
  storages_.clear();
  for (uint32_t t = 0; t < turns.size(); ++t) {
    const TurnModel::NodeInfo& node = model_.nodes[turns[t]];
    const size_t count = model_.makes(turns[t]).size();
    for (uint32_t o = 0; o < count; ++o) {
      Value& value = values_[first_made_[t] + o];
      const TurnModel::EdgeInfo& edge = model_.edges[value.edge];
      if (node.view) {
        value.storage = reads(t)[0] == kNone ? kNone : values_[reads(t)[0]].storage;
      } else if (edge.bytes > 0 && !overwrite(t, turns[t], o)) {
        value.storage = static_cast<uint32_t>(storages_.size());
        storages_.push_back({edge.bytes, t, value.last, false});
      }
      if (edge.callers && value.last == kForever && value.storage != kNone)
        storages_[value.storage].callers = true;
    }
  }
}

void LiveBytes::add_up(std::span<const uint32_t> turns) {
  live_.assign(turns.size() + 1, 0);
  for (const Storage& storage : storages_) {
    if (storage.callers) continue;
    live_[storage.from] += storage.bytes;
    if (storage.last < turns.size()) live_[storage.last + 1] -= storage.bytes;
  }
  int64_t now = 0;
  peak_ = -1;
  for (uint32_t t = 0; t < turns.size(); ++t) {
    now += live_[t];
    live_[t] = now + model_.nodes[turns[t]].scratch_bytes;
    if (live_[t] > peak_) peak_ = live_[t], peak_turn_ = t;
  }
  live_.resize(turns.size());
  peak_ = std::max<int64_t>(peak_, 0);
}

}  // namespace plimsoll
