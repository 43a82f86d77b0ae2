#include <algorithm>

#include "graph/bodies.h"
#include "prepare/lifetimes.h"
#include "prepare/node_aliases.h"
#include "prepare/pieces.h"

namespace plimsoll {
namespace {

Dim aligned(Dim bytes) {
  return ceil_div(bytes, Dim(64)) * Dim(64);
}

class Analysis {
 public:
  Analysis(const Graph& graph, FactsTable& facts, Schedule schedule, const LifetimeOptions& options,
           NodeAliases& aliases, TransientMemory& memory, bool is_root)
      : facts_(facts),
        options_(options),
        memory_(memory),
        is_root_(is_root),
        result_(graph, std::move(schedule), memory, is_root ? options.wanted : WantedOutputs(),
                is_root ? options.updated : UpdatedStates()),
        values_(result_.values),
        aliases_(aliases),
        pieces_(memory),
        placed_(values_.size(), false, memory.resource()),
        buffer_last_use_(memory.resource()) {}

  Lifetimes run() {
    result_.locations.resize(values_.size());
    for (size_t i = 0; i < values_.inputs().size(); ++i)
      place(values_.inputs()[i], {Where::kInput, static_cast<uint32_t>(i), 0});
    pass_uses_on_through_views();
    if (options_.reuse && options_.pieces) result_.has_pieces = pieces_.claim(result_, aliases_, facts_);
    for (size_t t = 0; t < result_.schedule.size(); ++t) visit(static_cast<uint32_t>(t));
    for (uint32_t v : values_.outputs()) locate(v);
    for (uint32_t v : values_.states()) locate(v);
    add_drops();
    if (is_root_) settle_outputs();
    if (is_root_) store_states();
    extend_to_last_uses();
    return std::move(result_);
  }

 private:
  static constexpr int64_t kForever = ScheduledValue::kForever;

  // A view's uses are uses of what it looks at.
  void pass_uses_on_through_views() {
    for (size_t t = result_.schedule.size(); t-- > 0;) {
      const Node& node = *result_.schedule[t].node;
      if (!aliases_.is_view(node)) continue;
      for (const Alias& alias : aliases_.of(node)) {
        const uint32_t view = values_.makes(t)[alias.output];
        if (alias.kind == AliasKind::kView && view != kNoValue)
          values_.use(values_.reads(t)[alias.input], values_[view].last_use);
      }
    }
  }

  void place(uint32_t value, Location location) {
    result_.locations[value] = location;
    placed_[value] = true;
  }

  // Where a value's bytes are; constants and outer values are placed when first asked for.
  Location locate(uint32_t value) {
    if (!placed_[value]) {
      const Edge* edge = values_[value].edge;
      const bool constant = edge->data != nullptr || is_known(facts_[edge]);
      place(value, constant ? Location{Where::kConstant, value, 0} : Location{Where::kOuter, edge->id, 0});
    }
    return result_.locations[value];
  }

  uint32_t new_buffer(BufferInfo::Kind kind, const Edge* edge, Dim size, int64_t step) {
    result_.buffers.push_back({size, step, step + 1, kind, edge, true});
    buffer_last_use_.push_back(ScheduledValue::kNever);
    return static_cast<uint32_t>(result_.buffers.size() - 1);
  }

  void visit(uint32_t turn) {
    const Node& node = *result_.schedule[turn].node;
    for (uint32_t v : values_.reads(turn)) {
      if (v != kNoValue) locate(v);
    }
    for (uint32_t v : values_.captures(turn)) locate(v);
    if (aliases_.is_constant(node)) {
      for (uint32_t v : values_.makes(turn)) {
        if (v != kNoValue) place(v, {Where::kConstant, v, 0});
      }
      return;
    }
    if (!aliases_.is_view(node)) return add_step(node, turn);
    for (const Alias& alias : aliases_.of(node)) {
      const uint32_t view = values_.makes(turn)[alias.output];
      if (alias.kind != AliasKind::kView || view == kNoValue) continue;
      Location location = locate(values_.reads(turn)[alias.input]);
      location.offset = location.offset + alias.offset_bytes;
      place(view, location);
    }
  }

  void add_step(const Node& node, uint32_t turn) {
    const auto step = static_cast<int64_t>(result_.steps.size());
    StepInfo info;
    info.turn = turn;
    info.dynamic = aliases_.is_dynamic(node);
    result_.depends_on_data |= info.dynamic;
    if (!info.dynamic && node.op->select != nullptr) {
      const Dim scratch = select_scratch(node);
      if (!(scratch == Dim(0))) info.scratch = new_buffer(BufferInfo::Kind::kScratch, nullptr, scratch, step);
    }
    result_.steps.push_back(info);
    if (node.op->control_flow) add_nested(node, turn, step);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (const uint32_t v = values_.makes(turn)[o]; v != kNoValue) place_output(node, turn, o, v, step);
    }
  }

  void place_output(const Node& node, uint32_t turn, size_t output, uint32_t value, int64_t step) {
    const Edge* edge = values_[value].edge;
    if (!is_static(facts_[edge])) return place(value, {Where::kDynamic, 0, 0});
    if (update_in_place(node, turn, output, value)) return;
    if (const auto claimed = claimed_location(value, step)) {
      place(value, *claimed);
    } else if (!overwrite_input(node, turn, output, value)) {
      place(value,
            {Where::kArena, new_buffer(BufferInfo::Kind::kValues, edge, value_bytes(facts_[edge]), step), 0});
    }
    int64_t& last = buffer_last_use_[result_.locations[value].index];
    last = std::max({last, values_[value].last_use, static_cast<int64_t>(turn)});
  }

  Dim select_scratch(const Node& node) {
    const std::vector<Facts> inputs = aliases_.gather(node.inputs);
    std::vector<Facts> outputs = aliases_.gather(node.outputs);
    SelectContext context(node, inputs, outputs, options_.packs, options_.threads, memory_.arena());
    node.op->select(context);
    return context.scratch_bytes();
  }

  // The buffer and offset that a value has because it is a piece of something, or holds pieces itself.
  std::optional<Location> claimed_location(uint32_t value, int64_t step) {
    const Pieces::Whole whole = pieces_.whole_of(value);
    uint32_t buffer = pieces_.buffer_of(whole.value);
    if (buffer == StepInfo::kNone) {
      if (whole.value == value) return std::nullopt;
      const Edge* edge = values_[whole.value].edge;
      buffer = new_buffer(BufferInfo::Kind::kValues, edge, value_bytes(facts_[edge]), step);
      pieces_.set_buffer(whole.value, buffer);
      buffer_last_use_[buffer] = values_[whole.value].last_use;
    }
    return Location{Where::kArena, buffer, whole.offset};
  }

  // The next value of a state takes its place, if the node may overwrite it and nobody reads the old one
  // later.
  bool update_in_place(const Node& node, uint32_t turn, size_t output, uint32_t value) {
    const std::span<const uint32_t> reads = values_.reads(turn);
    for (const Alias& alias : aliases_.of(node)) {
      if (alias.kind != AliasKind::kOverwrite || alias.output != output) continue;
      if (alias.input >= reads.size() || reads[alias.input] == kNoValue) continue;
      const uint32_t input = reads[alias.input];
      const auto elsewhere = [&](uint32_t v) {
        return v == kNoValue || result_.locations[v].where != Where::kConstant ||
               result_.locations[v].index != input;
      };
      if (!values_.is_next(value, input) || values_[input].last_use > static_cast<int64_t>(turn)) continue;
      if (std::count_if(reads.begin(), reads.end(), elsewhere) + 1 != static_cast<ptrdiff_t>(reads.size()))
        continue;
      if (!(value_bytes(facts_[values_[input].edge]) == value_bytes(facts_[values_[value].edge]))) continue;
      place(value, {Where::kConstant, input, 0});
      return true;
    }
    return false;
  }

  // An output may take the place of an input that nobody needs any more.
  bool overwrite_input(const Node& node, uint32_t turn, size_t output, uint32_t value) {
    if (!options_.reuse) return false;
    for (const Alias& alias : aliases_.of(node)) {
      if (alias.kind != AliasKind::kOverwrite || alias.output != output) continue;
      if (alias.input >= node.inputs.size() || node.inputs[alias.input] == nullptr) continue;
      const uint32_t input = values_.reads(turn)[alias.input];
      const Location location = locate(input);
      if (location.where != Where::kArena) continue;
      if (buffer_last_use_[location.index] > static_cast<int64_t>(turn)) continue;
      if (!(value_bytes(facts_[values_[input].edge]) == value_bytes(facts_[values_[value].edge]))) continue;
      if (shares_buffer(node, turn, alias.input, location.index)) continue;
      place(value, location);
      return true;
    }
    return false;
  }

  // Another value in the same buffer is read by this node, or was placed there by an earlier output.
  bool shares_buffer(const Node& node, uint32_t turn, size_t input, uint32_t buffer) {
    const auto in_buffer = [&](uint32_t value) {
      return value != kNoValue && placed_[value] && result_.locations[value].where == Where::kArena &&
             result_.locations[value].index == buffer;
    };
    // The same value a second time is no obstacle only where either place may be overwritten (Add(x, x)).
    const auto may_overwrite = [&](size_t other) {
      const auto& list = aliases_.of(node);
      return std::any_of(list.begin(), list.end(), [&](const Alias& alias) {
        return alias.kind == AliasKind::kOverwrite && alias.input == other;
      });
    };
    const std::span<const uint32_t> reads = values_.reads(turn);
    for (size_t i = 0; i < reads.size(); ++i) {
      if (i == input || !in_buffer(reads[i])) continue;
      if (reads[i] != reads[input] || !may_overwrite(i)) return true;
    }
    const std::span<const uint32_t> makes = values_.makes(turn);
    return std::any_of(makes.begin(), makes.end(), in_buffer);
  }

  void add_nested(const Node& node, uint32_t turn, int64_t step) {
    NestedMemory& nested = result_.nested.try_emplace(turn, memory_.resource()).first->second;
    Dim size = 0;
    for (Dim bytes : workspace_pieces(node)) {
      nested.workspace.push_back(size);
      size = size + aligned(bytes);
    }
    nested.bodies_offset = size;
    Dim most = 0;
    for (const Graph* body : bodies_of(node)) {
      nested.bodies.emplace_back();
      if (!was_inferred(*body)) continue;
      Lifetimes inner =
          Analysis(*body, facts_, file_order(*body, memory_), options_, aliases_, memory_, false).run();
      void* place = memory_.resource()->allocate(sizeof(Lifetimes), alignof(Lifetimes));
      nested.bodies.back() = {::new (place) Lifetimes(std::move(inner)), {memory_.resource()}};
      result_.depends_on_data |= nested.bodies.back()->depends_on_data;
      result_.has_pieces |= nested.bodies.back()->has_pieces;
      most = max(most, aligned(arena_bytes(*nested.bodies.back())));
    }
    size = size + most;
    if (size == Dim(0)) return;
    // Named after a result, if the node has any.
    const auto named =
        std::find_if(node.outputs.begin(), node.outputs.end(), [](const Edge* e) { return e != nullptr; });
    const Edge* edge = named == node.outputs.end() ? nullptr : *named;
    result_.steps.back().nested = new_buffer(BufferInfo::Kind::kBodies, edge, size, step);
  }

  std::vector<Dim> workspace_pieces(const Node& node) {
    if (node.op->control_flow->workspace == nullptr) return {};
    const std::vector<Facts> inputs = aliases_.gather(node.inputs);
    std::vector<Facts> outputs = aliases_.gather(node.outputs);
    const WorkspaceContext::BodyFacts inside = [&](const Edge* edge) -> const Facts& { return facts_[edge]; };
    WorkspaceContext context(node, inputs, outputs, inside);
    node.op->control_flow->workspace(context);
    return std::move(context.pieces);
  }

  // Memory for all buffers of a body: placed where sizes are constants, the most live bytes otherwise.
  Dim arena_bytes(Lifetimes& body) const {
    const bool concrete = std::all_of(body.buffers.begin(), body.buffers.end(), [](const BufferInfo& buffer) {
      return !buffer.live || buffer.size.is_constant();
    });
    if (concrete) {
      body.placement = plimsoll::place(body.problem(), options_.naive);
      return body.placement->peak.empty() ? 0 : body.placement->peak[0];
    }
    Dim most = 0;
    for (Dim live : body.live_bytes()) most = max(most, live);
    return most;
  }

  bool was_inferred(const Graph& body) const {
    return std::all_of(body.outputs.begin(), body.outputs.end(), [&](const Edge* edge) {
      return tensor_type(facts_[edge].type) != ElementType::kUndefined;
    });
  }

  // After the last turn that reads it, a value of dynamic size is dropped.
  void add_drops() {
    std::pmr::vector<StepInfo> steps(memory_.resource());
    std::pmr::vector<int64_t> moved(result_.steps.size() + 1, 0, memory_.resource());  // old step -> new
    std::pmr::vector<std::pair<int64_t, uint32_t>> drops(memory_.resource());
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (!placed_[v] || result_.locations[v].where != Where::kDynamic || values_[v].made < 0) continue;
      const int64_t last = std::max(values_[v].last_use, values_[v].made);
      if (last < kForever) drops.emplace_back(last, v);
    }
    if (drops.empty()) return;
    std::sort(drops.begin(), drops.end());
    size_t next = 0;
    for (size_t s = 0; s < result_.steps.size(); ++s) {
      moved[s] = static_cast<int64_t>(steps.size());
      steps.push_back(result_.steps[s]);
      const int64_t until = s + 1 < result_.steps.size() ? result_.steps[s + 1].turn : kForever;
      for (; next < drops.size() && drops[next].first < until; ++next) {
        StepInfo drop;
        drop.kind = StepKind::kDrop;
        drop.value = drops[next].second;
        drop.turn = result_.steps[s].turn;
        steps.push_back(drop);
      }
    }
    for (BufferInfo& buffer : result_.buffers) {
      buffer.lower = moved[static_cast<size_t>(buffer.lower)];
      buffer.upper = buffer.lower + 1;
    }
    result_.steps = std::move(steps);
  }

  // Uses were collected by turn; lifetimes count steps.
  void extend_to_last_uses() {
    // One past the last step of each turn and all before it.
    std::pmr::vector<int64_t> end_at(result_.schedule.size() + 1, 0, memory_.resource());
    for (size_t s = 0; s < result_.steps.size(); ++s) {
      if (result_.steps[s].kind == StepKind::kRun)
        end_at[result_.steps[s].turn] = static_cast<int64_t>(s) + 1;
    }
    for (size_t t = 1; t < end_at.size(); ++t) end_at[t] = std::max(end_at[t], end_at[t - 1]);
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      const int64_t last = buffer_last_use_[b];
      BufferInfo& buffer = result_.buffers[b];
      if (last < 0) continue;
      const int64_t end =
          last >= kForever ? static_cast<int64_t>(result_.steps.size()) : end_at[static_cast<size_t>(last)];
      buffer.upper = std::max(buffer.upper, end);
    }
  }

  // An output that fills a buffer of its own is written straight into the caller's memory; others are copied.
  void settle_outputs() {
    const size_t visible = values_.outputs().size() - values_.states().size();
    for (size_t i = 0; i < visible; ++i) {
      const uint32_t value = values_.outputs()[i];
      if (take_buffer(value, static_cast<uint32_t>(i))) continue;
      const Facts& facts = facts_[values_[value].edge];
      if (!is_static(facts)) continue;  // the caller's memory is made when the run is over
      StepInfo copy;
      copy.kind = StepKind::kCopy;
      copy.value = value;
      copy.output = static_cast<uint32_t>(i);
      copy.turn = static_cast<uint32_t>(result_.schedule.size());
      result_.steps.push_back(copy);
    }
  }

  // After everything else, the next values that are not in place yet.
  void store_states() {
    const std::span<const uint32_t> states = values_.states(), next = values_.next_states();
    for (size_t i = 0; i < states.size(); ++i) {
      const Edge &state = *values_[states[i]].edge, &from = *values_[next[i]].edge;
      const Location location = result_.locations[next[i]];
      if (!is_static(facts_[&from]) || !(value_bytes(facts_[&from]) == value_bytes(facts_[&state])))
        fail(ErrorCode::kInvalidModel, "state '{}': expected {} for its next value, found {}", state.name,
             to_string(facts_[&state].type), to_string(facts_[&from].type));
      if (location.where == Where::kConstant && location.index == states[i]) continue;
      const bool is_other_state =
          location.where == Where::kConstant && values_[location.index].edge->persistent;
      if (is_other_state)
        fail(ErrorCode::kInvalidModel, "state '{}': expected a value that a node makes, found state '{}'",
             state.name, values_[location.index].edge->name);
      StepInfo store;
      store.kind = StepKind::kStore;
      store.value = next[i];
      store.state = states[i];
      store.turn = static_cast<uint32_t>(result_.schedule.size());
      result_.steps.push_back(store);
    }
  }

  // From now on it is written straight into memory of the caller's.
  bool take_buffer(uint32_t value, uint32_t output) {
    const Location location = result_.locations[value];
    if (location.where != Where::kArena || !(location.offset == Dim(0))) return false;
    BufferInfo& buffer = result_.buffers[location.index];
    if (!buffer.live || !(buffer.size == value_bytes(facts_[values_[value].edge]))) return false;
    buffer.live = false;
    for (Location& other : result_.locations) {
      if (other.where == Where::kArena && other.index == location.index) {
        other.where = Where::kOutput;
        other.index = output;
      }
    }
    return true;
  }

  FactsTable& facts_;
  const LifetimeOptions& options_;
  TransientMemory& memory_;
  const bool is_root_;
  Lifetimes result_;
  ScheduledValues& values_;
  NodeAliases& aliases_;
  Pieces pieces_;
  std::pmr::vector<bool> placed_;              // by value
  std::pmr::vector<int64_t> buffer_last_use_;  // by buffer, as a turn
};

}  // namespace

Lifetimes analyze(const Graph& root, FactsTable& facts, Schedule schedule, const LifetimeOptions& options,
                  TransientMemory& memory) {
  NodeAliases aliases(root, facts, memory);
  return Analysis(root, facts, std::move(schedule), options, aliases, memory, true).run();
}

}  // namespace plimsoll
