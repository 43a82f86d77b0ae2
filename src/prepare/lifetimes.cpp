#include "prepare/lifetimes.h"

#include <algorithm>

#include "ops/control_flow.h"

namespace plimsoll {

Dim value_bytes(const Facts& facts) {
  const int bits = element_bits(facts.type.type);
  return ceil_div(product(facts.type.dims) * Dim(bits), Dim(8));
}

bool is_static(const Facts& facts) {
  if (!facts.type.ranked || facts.type.kind != ValueKind::kTensor) return false;
  return std::none_of(facts.type.dims.begin(), facts.type.dims.end(),
                      [](Dim d) { return d.depends_on_data(); });
}

bool is_known(const Facts& facts) {
  if (facts.constant != nullptr) return facts.constant->bytes() <= kMaxKnownBytes;
  if (!facts.values || !facts.is_concrete()) return false;
  return std::all_of(facts.values->begin(), facts.values->end(), [](Dim d) { return d.is_constant(); });
}

std::vector<Dim> Lifetimes::live_bytes() const {
  // Events instead of steps times buffers: a model has thousands of both.
  std::vector<Dim> change(steps.size() + 1, Dim(0));
  for (const BufferInfo& buffer : buffers) {
    if (!buffer.live) continue;
    change[static_cast<size_t>(buffer.lower)] = change[static_cast<size_t>(buffer.lower)] + buffer.size;
    change[static_cast<size_t>(buffer.upper)] = change[static_cast<size_t>(buffer.upper)] - buffer.size;
  }
  std::vector<Dim> live(steps.size(), Dim(0));
  Dim now = 0;
  for (size_t s = 0; s < steps.size(); ++s) live[s] = now = now + change[s];
  return live;
}

Dim Lifetimes::scratch_bytes() const {
  Dim most = 0;
  for (const StepInfo& step : steps) most = max(most, step.scratch_bytes);
  for (const auto& [node, programs] : bodies) {
    for (const auto& body : programs) {
      if (body != nullptr) most = max(most, body->scratch_bytes());
    }
  }
  return most;
}

plan::Placement place(const plan::Problem& problem, bool naive) {
  return *(naive ? plan::place_naive(problem) : plan::place_greedy(problem));
}

plan::Problem Lifetimes::problem() const {
  plan::Problem problem;
  for (const BufferInfo& buffer : buffers) {
    if (buffer.live) problem.buffers.push_back({buffer.size.value(), buffer.lower, buffer.upper, 64, {}, 0});
  }
  return problem;
}

Dim Lifetimes::arena_bytes(bool naive) const {
  const bool concrete = std::all_of(buffers.begin(), buffers.end(), [](const BufferInfo& buffer) {
    return !buffer.live || buffer.size.is_constant();
  });
  if (concrete) {
    const plan::Placement placement = place(problem(), naive);
    return placement.peak.empty() ? 0 : placement.peak[0];
  }
  Dim most = 0;
  for (Dim live : live_bytes()) most = max(most, live);
  return most;
}

namespace {

class Analysis {
 public:
  Analysis(const Graph& graph, FactsTable& facts, const LifetimeOptions& options, bool is_root)
      : graph_(graph), facts_(facts), options_(options), is_root_(is_root) {}

  Lifetimes run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      place(graph_.inputs[i], {Where::kInput, static_cast<uint32_t>(i), 0});
    find_last_uses();
    if (options_.reuse && options_.pieces) claim_pieces();
    for (const Node* node : graph_.nodes) visit(*node);
    extend_to_last_uses();
    settle_outputs();
    return std::move(result_);
  }

 private:
  static constexpr int64_t kForever = int64_t{1} << 60;

  // Steps are numbered as they are made, so uses are first collected by position of the node.
  void find_last_uses() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const Edge* edge : graph_.nodes[i]->inputs) use(edge, static_cast<int64_t>(i));
      if (graph_.nodes[i]->op->control_flow) {
        for (const Edge* edge : captured_edges(*graph_.nodes[i])) use(edge, static_cast<int64_t>(i));
      }
    }
    for (const Edge* edge : graph_.outputs) use(edge, kForever);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) position_[graph_.nodes[i]->id] = static_cast<int64_t>(i);
    // A view's uses are uses of what it looks at.
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = *graph_.nodes[i];
      if (!is_view(node)) continue;
      for (const Alias& alias : aliases(node)) {
        if (alias.kind != AliasKind::kView || node.outputs[alias.output] == nullptr) continue;
        const auto found = last_use_.find(node.outputs[alias.output]->id);
        if (found != last_use_.end()) use(node.inputs[alias.input], found->second);
      }
    }
  }
  void use(const Edge* edge, int64_t at) {
    if (edge == nullptr) return;
    auto [entry, added] = last_use_.try_emplace(edge->id, at);
    if (!added) entry->second = std::max(entry->second, at);
  }
  int64_t last_use(const Edge* edge) const {
    const auto found = last_use_.find(edge->id);
    return found == last_use_.end() ? -1 : found->second;
  }

  std::vector<Facts> gather(std::span<Edge* const> edges) const {
    std::vector<Facts> result(edges.size());
    for (size_t i = 0; i < edges.size(); ++i) {
      if (edges[i] != nullptr) result[i] = facts_[edges[i]];
    }
    return result;
  }

  const std::vector<Alias>& aliases(const Node& node) {
    auto [entry, added] = aliases_.try_emplace(node.id);
    if (added && node.op->alias != nullptr && !is_dynamic(node)) {
      const std::vector<Facts> inputs = gather(node.inputs);
      std::vector<Facts> outputs = gather(node.outputs);
      AliasContext context(node, inputs, outputs);
      node.op->alias(context);
      entry->second = std::move(context.aliases);
    }
    return entry->second;
  }

  bool is_dynamic(const Node& node) const {
    auto moves = [&](const Edge* edge) { return edge != nullptr && !is_static(facts_[edge]); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), moves) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), moves);
  }
  bool is_constant(const Node& node) const {
    return !node.op->control_flow &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](const Edge* edge) { return edge == nullptr || is_known(facts_[edge]); });
  }
  bool is_view(const Node& node) {
    if (node.op->control_flow || is_constant(node) || is_dynamic(node)) return false;
    size_t views = 0, outputs = 0;
    for (const Edge* edge : node.outputs) outputs += edge != nullptr;
    for (const Alias& alias : aliases(node)) {
      views += alias.kind == AliasKind::kView && node.outputs[alias.output] != nullptr;
    }
    return outputs > 0 && views == outputs;
  }

  void place(const Edge* edge, Location location) { result_.locations[edge->id] = location; }

  // Where an input's bytes are; constants and outer values are placed when first asked for.
  Location locate(const Edge* edge) {
    const auto found = result_.locations.find(edge->id);
    if (found != result_.locations.end()) return found->second;
    const bool constant = edge->data != nullptr || is_known(facts_[edge]);
    const Location location{constant ? Where::kConstant : Where::kOuter, edge->id, 0};
    place(edge, location);
    return location;
  }

  uint32_t new_buffer(const Edge* edge, Dim size, int64_t step) {
    result_.buffers.push_back({size, step, step + 1, edge, true});
    buffer_last_use_.push_back(-1);
    return static_cast<uint32_t>(result_.buffers.size() - 1);
  }

  void visit(const Node& node) {
    for (const Edge* edge : node.inputs) {
      if (edge != nullptr) locate(edge);
    }
    if (node.op->control_flow) {
      for (const Edge* edge : captured_edges(node)) locate(edge);
    }
    if (is_constant(node)) {
      for (const Edge* edge : node.outputs) {
        if (edge != nullptr) place(edge, {Where::kConstant, edge->id, 0});
      }
      return;
    }
    if (is_view(node)) {
      for (const Alias& alias : aliases(node)) {
        if (alias.kind != AliasKind::kView || node.outputs[alias.output] == nullptr) continue;
        Location location = locate(node.inputs[alias.input]);
        location.offset = location.offset + alias.offset_bytes;
        place(node.outputs[alias.output], location);
      }
      return;
    }
    add_step(node);
  }

  void add_step(const Node& node) {
    const auto step = static_cast<int64_t>(result_.steps.size());
    StepInfo info;
    info.node = &node;
    info.dynamic = is_dynamic(node);
    result_.depends_on_data |= info.dynamic;
    step_of_[node.id] = step;
    if (!info.dynamic && node.op->select != nullptr) info.scratch_bytes = select_scratch(node);
    result_.steps.push_back(info);
    if (node.op->control_flow) add_bodies(node, step);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const Edge* edge = node.outputs[o];
      if (edge == nullptr) continue;
      if (!is_static(facts_[edge])) {
        place(edge, {Where::kDynamic, 0, 0});
      } else if (const auto claimed = claimed_location(edge, step)) {
        place(edge, *claimed);
      } else if (!overwrite_input(node, o)) {
        place(edge, {Where::kArena, new_buffer(edge, value_bytes(facts_[edge]), step), 0});
      }
      const Location location = result_.locations[edge->id];
      if (location.where == Where::kArena) {
        int64_t& last = buffer_last_use_[location.index];
        last = std::max(last, last_use(edge));
      }
    }
  }

  Dim select_scratch(const Node& node) {
    const std::vector<Facts> inputs = gather(node.inputs);
    std::vector<Facts> outputs = gather(node.outputs);
    SelectContext context(node, inputs, outputs, options_.packs, options_.threads, choices_);
    node.op->select(context);
    return context.scratch_bytes();
  }

  // Inputs of a Concat that their producers can write straight into its output. Later nodes claim
  // first, so that a chain of Concats ends in one buffer.
  void claim_pieces() {
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = *graph_.nodes[n];
      if (is_constant(node) || is_view(node)) continue;
      for (const Alias& alias : aliases(node)) {
        if (alias.kind != AliasKind::kPiece) continue;
        const Edge* piece = node.inputs[alias.input];
        if (!may_be_claimed(node, piece)) continue;
        claims_[piece->id] = {node.outputs[alias.output], alias.offset_bytes};
      }
    }
  }
  bool may_be_claimed(const Node& node, const Edge* piece) {
    if (piece == nullptr || piece->graph != &graph_ || piece->producer == nullptr) return false;
    if (claims_.count(piece->id) > 0 || last_use(piece) >= kForever) return false;
    if (std::count(node.inputs.begin(), node.inputs.end(), piece) != 1) return false;
    const Node& producer = *piece->producer;
    return !is_known(facts_[piece]) && !is_dynamic(producer) && !is_view(producer) &&
           !producer.op->control_flow;
  }

  // The buffer and offset that `edge` has because it is a piece of something, or holds pieces itself.
  std::optional<Location> claimed_location(const Edge* edge, int64_t step) {
    const Edge* whole = edge;
    Dim offset = 0;
    for (auto claim = claims_.find(whole->id); claim != claims_.end(); claim = claims_.find(whole->id)) {
      offset = offset + claim->second.offset;
      whole = claim->second.whole;
    }
    auto buffer = whole_buffers_.find(whole->id);
    if (buffer == whole_buffers_.end()) {
      if (whole == edge) return std::nullopt;
      buffer = whole_buffers_.emplace(whole->id, new_buffer(whole, value_bytes(facts_[whole]), step)).first;
      buffer_last_use_[buffer->second] = last_use(whole);
    }
    return Location{Where::kArena, buffer->second, offset};
  }

  // An output may take the place of an input that nobody needs any more.
  bool overwrite_input(const Node& node, size_t output) {
    if (!options_.reuse) return false;
    const int64_t now = position_[node.id];
    for (const Alias& alias : aliases(node)) {
      if (alias.kind != AliasKind::kOverwrite || alias.output != output) continue;
      const Edge* input = node.input(alias.input);
      if (input == nullptr) continue;
      const Location location = locate(input);
      if (location.where != Where::kArena) continue;
      if (buffer_last_use_[location.index] > now) continue;
      if (!(value_bytes(facts_[input]) == value_bytes(facts_[node.outputs[output]]))) continue;
      if (shares_buffer(node, alias.input, location.index)) continue;
      place(node.outputs[output], location);
      return true;
    }
    return false;
  }

  // Another value in the same buffer is read by this node, or was placed there by an earlier output.
  bool shares_buffer(const Node& node, size_t input, uint32_t buffer) {
    auto in_buffer = [&](const Edge* edge) {
      const auto found = result_.locations.find(edge->id);
      return found != result_.locations.end() && found->second.where == Where::kArena &&
             found->second.index == buffer;
    };
    // The same value a second time is no obstacle only where either place may be overwritten (Add(x, x)).
    auto may_overwrite = [&](size_t i) {
      return std::any_of(aliases(node).begin(), aliases(node).end(), [&](const Alias& alias) {
        return alias.kind == AliasKind::kOverwrite && alias.input == i;
      });
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Edge* edge = node.inputs[i];
      if (i == input || edge == nullptr || !in_buffer(edge)) continue;
      if (edge != node.inputs[input] || !may_overwrite(i)) return true;
    }
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const Edge* edge) { return edge != nullptr && in_buffer(edge); });
  }

  void add_bodies(const Node& node, int64_t step) {
    auto& programs = result_.bodies[node.id];
    Dim nested = 0;
    for (const Graph* body : bodies_of(node)) {
      programs.push_back(nullptr);
      if (!was_inferred(*body)) continue;
      programs.back() = std::make_unique<Lifetimes>(analyze(*body, facts_, options_, false));
      result_.depends_on_data |= programs.back()->depends_on_data;
      // Bodies take turns in the same memory.
      nested = max(nested, ceil_div(programs.back()->arena_bytes(options_.naive), Dim(64)) * Dim(64));
    }
    nested = nested + carried_bytes(node);
    if (nested == Dim(0)) return;
    // Named after a result, if the node has any.
    const auto named =
        std::find_if(node.outputs.begin(), node.outputs.end(), [](const Edge* e) { return e != nullptr; });
    result_.steps[static_cast<size_t>(step)].nested =
        new_buffer(named == node.outputs.end() ? nullptr : *named, nested, step);
  }

  // A Loop keeps two copies of its carried values: what an iteration reads and what it writes.
  Dim carried_bytes(const Node& node) const {
    if (node.op_type != "Loop") return 0;
    Dim sum = 0;
    const Graph& body = *bodies_of(node)[0];
    for (size_t i = 2; i < body.inputs.size(); ++i) {
      const Facts& facts = facts_[body.inputs[i]];
      if (is_static(facts)) sum = sum + Dim(2) * ceil_div(value_bytes(facts), Dim(64)) * Dim(64);
    }
    return sum;
  }

  bool was_inferred(const Graph& body) const {
    return std::all_of(body.outputs.begin(), body.outputs.end(),
                       [&](const Edge* edge) { return facts_[edge].type.type != ElementType::kUndefined; });
  }

  // Uses were collected by position of the node; lifetimes count steps.
  void extend_to_last_uses() {
    std::vector<int64_t> step_at(graph_.nodes.size() + 1, 0);
    int64_t next = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto found = step_of_.find(graph_.nodes[i]->id);
      if (found != step_of_.end()) next = found->second + 1;
      step_at[i] = next;  // one past the last step up to and including this node
    }
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      const int64_t last = buffer_last_use_[b];
      BufferInfo& buffer = result_.buffers[b];
      if (last < 0) continue;
      const int64_t end =
          last >= kForever ? static_cast<int64_t>(result_.steps.size()) : step_at[static_cast<size_t>(last)];
      buffer.upper = std::max(buffer.upper, end);
    }
  }

  // An output that fills a buffer of its own is written straight into the caller's memory.
  void settle_outputs() {
    result_.output_copied.assign(graph_.outputs.size(), true);
    for (const Edge* edge : graph_.outputs) locate(edge);
    if (!is_root_) return;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Edge* edge = graph_.outputs[i];
      const Location location = result_.locations[edge->id];
      if (location.where != Where::kArena || !(location.offset == Dim(0))) continue;
      BufferInfo& buffer = result_.buffers[location.index];
      if (!buffer.live || !(buffer.size == value_bytes(facts_[edge]))) continue;
      buffer.live = false;
      for (auto& [id, other] : result_.locations) {
        if (other.where == Where::kArena && other.index == location.index) {
          other.where = Where::kOutput;
          other.index = static_cast<uint32_t>(i);
        }
      }
      result_.output_copied[i] = false;
    }
  }

  const Graph& graph_;
  FactsTable& facts_;
  const LifetimeOptions& options_;
  const bool is_root_;
  Budget planning_{"planning", 0};
  BumpArena choices_{planning_};  // only their scratch counts here
  Lifetimes result_;
  std::unordered_map<uint32_t, int64_t> last_use_;  // by edge id: position of the last node that reads it
  std::unordered_map<uint32_t, int64_t> position_;  // by node id
  std::unordered_map<uint32_t, int64_t> step_of_;   // by node id
  std::unordered_map<uint32_t, std::vector<Alias>> aliases_;  // by node id
  struct Claim {
    const Edge* whole;
    Dim offset;
  };
  std::unordered_map<uint32_t, Claim> claims_;            // by edge id of the piece
  std::unordered_map<uint32_t, uint32_t> whole_buffers_;  // by edge id of the whole
  std::vector<int64_t> buffer_last_use_;                  // by buffer, as a node position
};

}  // namespace

Lifetimes analyze(const Graph& graph, FactsTable& facts, const LifetimeOptions& options, bool is_root) {
  return Analysis(graph, facts, options, is_root).run();
}

}  // namespace plimsoll
