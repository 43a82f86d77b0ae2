#include "prepare/program_builder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "graph/bodies.h"

namespace plimsoll {

TensorView materialize(const Facts& facts, BumpArena& arena) {
  std::span<int64_t> dims = arena.array<int64_t>(facts.type.rank());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = facts.type.dims[i].value();
  TensorView view{nullptr, facts.type.type, false, dims};
  view.data = static_cast<std::byte*>(arena.allocate(static_cast<size_t>(view.bytes()) + 1, 64));
  if (facts.constant != nullptr) {
    if (view.bytes() > 0) std::memcpy(view.data, facts.constant->data, static_cast<size_t>(view.bytes()));
    return view;
  }
  auto write = [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < facts.values->size(); ++i)
      view.as<T>()[i] = static_cast<T>((*facts.values)[i].value());
  };
  if (view.type == ElementType::kBool) {
    write(TypeTag<bool>{});
  } else if (is_float(view.type)) {
    visit_float(view.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < facts.values->size(); ++i)
        view.as<T>()[i] = static_cast<T>(static_cast<float>((*facts.values)[i].value()));
    });
  } else {
    visit_integer(view.type, write);
  }
  return view;
}

namespace {

class ProgramBuilder {
 public:
  using Known = std::pmr::vector<std::byte*>;
  using OuterValues = std::unordered_map<uint32_t, uint32_t>;  // edge id -> value of the enclosing program

  ProgramBuilder(FactsTable& facts, const Lifetimes& lifetimes, const plan::Placement& placement,
                 const PreparedModel& model, BumpArena& arena, TransientMemory& memory, Known& known)
      : facts_(facts),
        lifetimes_(lifetimes),
        placement_(placement),
        model_(model),
        arena_(arena),
        memory_(memory),
        known_(known),
        offsets_(memory.resource()),
        values_(memory.resource()),
        index_(lifetimes.values.size(), kNoValue, memory.resource()),
        known_index_(memory.resource()) {}

  Program* build(const Program* outer, const OuterValues& outer_values) {
    outer_ = outer;
    outer_values_ = &outer_values;
    program_ = arena_.make<Program>();
    program_->graph = lifetimes_.graph;
    program_->arena_bytes = placement_.peak.empty() ? 0 : placement_.peak[0];
    find_offsets();
    program_->steps = arena_.array<Step>(lifetimes_.steps.size());
    // Bodies refer to values of this program by index, so every value comes before any body.
    for (uint32_t v : lifetimes_.values.inputs()) value_of(v);
    for (size_t s = 0; s < program_->steps.size(); ++s) fill_step(s);
    program_->outputs = indices(lifetimes_.values.outputs());
    keep_values();
    find_dead_ranges();
    find_first_change();
    for (size_t s = 0; s < program_->steps.size(); ++s) build_bodies(s);
    return program_;
  }

 private:
  // Member by member: a copy would bring along what lies between them, and an image of the arena must be the
  // same every time (memory/arena_image.h).
  void keep_values() {
    program_->values = arena_.array<ProgramValue>(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      const ProgramValue& from = values_[i];
      ProgramValue& to = program_->values[i];
      to.edge = from.edge;
      to.address.space = from.address.space;
      to.address.index = from.address.index;
      to.address.offset = from.address.offset;
      to.is_static = from.is_static;
      to.view.type = from.view.type;
      to.view.packed = from.view.packed;
      to.view.dims = from.view.dims;
      to.view.kind = from.view.kind;
      to.bytes = from.bytes;
    }
  }

  // Offsets by buffer; those moved to an output have none.
  void find_offsets() {
    size_t next = 0;
    offsets_.assign(lifetimes_.buffers.size(), 0);
    for (size_t b = 0; b < offsets_.size(); ++b) {
      if (lifetimes_.buffers[b].live) offsets_[b] = placement_.offsets[next++];
    }
  }

  std::span<const uint32_t> indices(std::span<const uint32_t> scheduled) {
    std::span<uint32_t> result = arena_.array<uint32_t>(scheduled.size());
    for (size_t i = 0; i < result.size(); ++i) result[i] = value_of(scheduled[i]);
    return result;
  }

  uint32_t value_of(uint32_t scheduled) {
    if (scheduled == kNoValue) return kNoValue;
    if (index_[scheduled] != kNoValue) return index_[scheduled];
    ProgramValue value;
    value.edge = lifetimes_.values[scheduled].edge;
    const Facts& facts = facts_[value.edge];
    value.is_static = is_static(facts);
    value.view.type = tensor_type(facts.type);
    value.view.kind = facts.type.kind;
    std::span<int64_t> dims = arena_.array<int64_t>(facts.type.rank());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = facts.type.dims[i].constant().value_or(-1);
    value.view.dims = dims;
    if (value.is_static) value.bytes = value.view.bytes();
    locate(lifetimes_.locations[scheduled], value);
    index_[scheduled] = static_cast<uint32_t>(values_.size());
    values_.push_back(value);
    return index_[scheduled];
  }

  void locate(const Location& location, ProgramValue& value) {
    const int64_t offset = location.offset.value();
    switch (location.where) {
      case Where::kArena:
        value.address = {Space::kArena, 0, offsets_[location.index] + offset};
        break;
      case Where::kInput:
        value.address = {Space::kInput, location.index, offset};
        break;
      case Where::kOutput:
        value.address = {Space::kOutput, location.index, offset};
        break;
      case Where::kConstant:
        locate_constant(location.index, offset, value);
        break;
      case Where::kOuter:
        locate_outer(location.index, offset, value);
        break;
      case Where::kDynamic:
        value.address = {Space::kDynamic, 0, 0};
        break;
    }
  }

  void locate_constant(uint32_t scheduled, int64_t offset, ProgramValue& value) {
    const Edge* source = lifetimes_.values[scheduled].edge;
    if (source->data != nullptr) {
      value.edge = source;
      value.address = {Space::kWeight, 0, offset};
      return;
    }
    auto [entry, added] = known_index_.try_emplace(scheduled, static_cast<uint32_t>(known_.size()));
    if (added) known_.push_back(materialize(facts_[source], arena_).data);
    value.address = {Space::kKnown, entry->second, offset};
  }

  void locate_outer(uint32_t edge_id, int64_t offset, ProgramValue& value) {
    const uint32_t index = outer_values_->at(edge_id);
    const ProgramValue& source = outer_->values[index];
    value.address = {Space::kOuter, index, offset};
    // A constant of an enclosing graph is a constant here.
    if (is_constant(source.address.space)) {
      value.edge = source.edge;
      value.address = source.address;
      value.address.offset += offset;
    }
  }

  uint32_t packed_value(const Node& node, size_t input) {
    ProgramValue value;
    value.edge = node.inputs[input];
    value.address = {Space::kPacked, 0, model_.weights().packed_offset(node, input)};
    value.view = value.edge->data->view();
    value.view.packed = true;
    value.view.data = nullptr;
    values_.push_back(value);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  void fill_step(size_t s) {
    const StepInfo& info = lifetimes_.steps[s];
    Step& step = program_->steps[s];
    step.kind = info.kind;
    if (info.kind == StepKind::kRun) return fill_run(info, step);
    step.node = lifetimes_.values[info.value].edge->producer;
    step.inputs = indices({&info.value, 1});
    if (info.kind == StepKind::kStore) step.outputs = indices({&info.state, 1});
    step.output = info.output;
  }

  void fill_run(const StepInfo& info, Step& step) {
    const Node& node = lifetimes_.node(info);
    step.node = &node;
    step.dynamic = info.dynamic;
    if (info.scratch != StepInfo::kNone) step.scratch_offset = offsets_[info.scratch];
    const std::span<const uint32_t> reads = lifetimes_.values.reads(info.turn);
    std::span<uint32_t> inputs = arena_.array<uint32_t>(reads.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool packed = reads[i] != kNoValue && model_.weights().is_packed(node, i);
      inputs[i] = packed ? packed_value(node, i) : value_of(reads[i]);
    }
    step.inputs = inputs;
    step.outputs = indices(lifetimes_.values.makes(info.turn));
    step.first_argument = program_->argument_count;
    program_->argument_count += static_cast<uint32_t>(step.inputs.size() + step.outputs.size());
    if (node.op->control_flow) {
      for (uint32_t v : lifetimes_.values.captures(info.turn)) value_of(v);
      step.first_body = program_->body_count;
      program_->body_count += static_cast<uint32_t>(bodies_of(node).size());
    }
    if (!info.dynamic) bind(node, step);
  }

  void bind(const Node& node, Step& step) {
    std::vector<Facts> inputs(node.inputs.size()), outputs(node.outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] != nullptr) inputs[i] = facts_[node.inputs[i]];
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != nullptr) outputs[i] = facts_[node.outputs[i]];
    }
    const int threads = model_.options().threads;
    if (node.op->select != nullptr) {
      SelectContext context(node, inputs, outputs, &model_.weights(), threads, arena_);
      step.choice = node.op->select(context);
    }
    if (node.op->bind != nullptr) {
      BindContext context(node, inputs, outputs, step.choice, threads, arena_);
      step.bound = node.op->bind(context);
    }
    step.cost = cost_of(NodeContext(node, inputs, outputs));
  }

  void find_first_change() {
    const auto is_state = [&](uint32_t v) {
      return v != kNoValue && values_[v].address.space == Space::kWeight && values_[v].edge->persistent;
    };
    const auto changes = [&](const Step& step) {
      return std::any_of(step.outputs.begin(), step.outputs.end(), is_state);
    };
    const auto first = std::find_if(program_->steps.begin(), program_->steps.end(), changes);
    program_->first_change = static_cast<size_t>(first - program_->steps.begin());
  }

  void find_dead_ranges() {
    if (!model_.options().check_plans) return;
    std::vector<DeadRange> dead;
    for (size_t b = 0; b < lifetimes_.buffers.size(); ++b) {
      const BufferInfo& buffer = lifetimes_.buffers[b];
      // What lives to the end may be an output that is read after the last step.
      const bool to_the_end = buffer.upper == static_cast<int64_t>(lifetimes_.steps.size());
      const int64_t bytes = buffer.size.value();  // an arena of nothing has no address
      if (buffer.live && !to_the_end && bytes > 0) dead.push_back({buffer.upper - 1, offsets_[b], bytes});
    }
    std::sort(dead.begin(), dead.end(),
              [](const DeadRange& a, const DeadRange& b) { return a.step < b.step; });
    program_->dead = arena_.copy(dead);
  }

  void build_bodies(size_t s) {
    const StepInfo& info = lifetimes_.steps[s];
    const auto found = lifetimes_.nested.find(info.turn);
    if (info.kind != StepKind::kRun || found == lifetimes_.nested.end()) return;
    const NestedMemory& nested = found->second;
    Step& step = program_->steps[s];
    const int64_t base = info.nested == StepInfo::kNone ? 0 : offsets_[info.nested];
    std::span<int64_t> workspace = arena_.array<int64_t>(nested.workspace.size());
    for (size_t i = 0; i < workspace.size(); ++i) workspace[i] = base + nested.workspace[i].value();
    step.workspace = workspace;
    step.bodies_offset = base + nested.bodies_offset.value();
    OuterValues visible;
    for (uint32_t v : lifetimes_.values.captures(info.turn))
      visible[lifetimes_.values[v].edge->id] = index_[v];
    std::span<Program*> bodies = arena_.array<Program*>(nested.bodies.size());
    for (size_t b = 0; b < bodies.size(); ++b) {
      if (nested.bodies[b] == nullptr) continue;
      const Lifetimes& body = *nested.bodies[b];
      bodies[b] = ProgramBuilder(facts_, body, *body.placement, model_, arena_, memory_, known_)
                      .build(program_, visible);
    }
    step.bodies = bodies;
  }

  FactsTable& facts_;
  const Lifetimes& lifetimes_;
  const plan::Placement& placement_;
  const PreparedModel& model_;
  const Program* outer_ = nullptr;
  const OuterValues* outer_values_ = nullptr;
  BumpArena& arena_;
  TransientMemory& memory_;
  Known& known_;
  Program* program_ = nullptr;
  std::pmr::vector<int64_t> offsets_;
  std::pmr::vector<ProgramValue> values_;
  std::pmr::vector<uint32_t> index_;                         // scheduled value -> value
  std::pmr::unordered_map<uint32_t, uint32_t> known_index_;  // scheduled value -> entry of known_
};

}  // namespace

BuiltProgram build_program(FactsTable& facts, const Lifetimes& lifetimes, const plan::Placement& placement,
                           const PreparedModel& model, BumpArena& arena, TransientMemory& memory) {
  ProgramBuilder::Known known(memory.resource());
  BuiltProgram built;
  built.program = ProgramBuilder(facts, lifetimes, placement, model, arena, memory, known).build(nullptr, {});
  built.known = arena.copy(std::span<std::byte* const>(known));
  return built;
}

Frame* make_frame(const Program& program, BumpArena& arena) {
  Frame* frame = arena.make<Frame>();
  frame->program = &program;
  frame->values = arena.array<TensorView>(program.values.size());
  frame->arguments = arena.array<TensorView>(program.argument_count);
  frame->bodies = arena.array<Frame*>(program.body_count);
  for (const Step& step : program.steps) {
    for (size_t b = 0; b < step.bodies.size(); ++b) {
      if (step.bodies[b] == nullptr) continue;
      Frame* body = make_frame(*step.bodies[b], arena);
      body->given = arena.array<TensorView>(body->program->graph->inputs.size());
      body->made = arena.array<TensorView>(body->given.size());
      frame->bodies[step.first_body + b] = body;
    }
  }
  return frame;
}

size_t frame_bytes(const Program& program) {
  size_t bytes = sizeof(Frame) + (program.values.size() + program.argument_count) * sizeof(TensorView) +
                 program.body_count * sizeof(Frame*);
  for (const Step& step : program.steps) {
    for (const Program* body : step.bodies) {
      if (body != nullptr) bytes += frame_bytes(*body) + 2 * body->graph->inputs.size() * sizeof(TensorView);
    }
  }
  return bytes;
}

void bind_constants(Frame& frame, const Weights& weights, std::span<std::byte* const> known) {
  for (size_t i = 0; i < frame.values.size(); ++i) {
    const ProgramValue& value = frame.program->values[i];
    const Address& address = value.address;
    if (!is_constant(address.space)) continue;
    frame.values[i] = value.view;
    std::byte* base = address.space == Space::kKnown    ? known[address.index]
                      : address.space == Space::kPacked ? weights.packed_base()
                                                        : weights.raw(*value.edge);
    frame.values[i].data = base + address.offset;
  }
  for (Frame* body : frame.bodies) {
    if (body != nullptr) bind_constants(*body, weights, known);
  }
}

}  // namespace plimsoll
