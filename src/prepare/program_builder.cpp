#include "prepare/program_builder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/control_flow.h"

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

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, FactsTable& facts, const Lifetimes& lifetimes,
                 const plan::Placement& placement, const PreparedModel& model, const Program* outer,
                 BumpArena& arena)
      : graph_(graph),
        facts_(facts),
        lifetimes_(lifetimes),
        placement_(placement),
        model_(model),
        outer_(outer),
        arena_(arena) {}

  Program* build() {
    program_ = arena_.make<Program>();
    program_->graph = &graph_;
    program_->arena_bytes = placement_.peak.empty() ? 0 : placement_.peak[0];
    find_offsets();
    program_->steps = arena_.array<Step>(lifetimes_.steps.size());
    // Bodies refer to values of this program by index, so every value comes before any body.
    for (const Edge* edge : graph_.inputs) value_of(edge);
    for (size_t s = 0; s < program_->steps.size(); ++s) fill_step(s);
    std::span<uint32_t> outputs = arena_.array<uint32_t>(graph_.outputs.size());
    std::span<bool> copied = arena_.array<bool>(graph_.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = value_of(graph_.outputs[i]);
      copied[i] = lifetimes_.output_copied[i];
    }
    program_->outputs = outputs;
    program_->output_copied = copied;
    program_->values = arena_.copy(values_);
    find_frees();
    find_dead_ranges();
    for (size_t s = 0; s < program_->steps.size(); ++s) build_bodies(s);
    return program_;
  }

 private:
  // Offsets by buffer; merged buffers have none.
  void find_offsets() {
    size_t next = 0;
    offsets_.assign(lifetimes_.buffers.size(), 0);
    for (size_t b = 0; b < offsets_.size(); ++b) {
      if (lifetimes_.buffers[b].live) offsets_[b] = placement_.offsets[next++];
    }
  }

  uint32_t value_of(const Edge* edge) {
    if (edge == nullptr) return kNoValue;
    const auto found = index_.find(edge->id);
    if (found != index_.end()) return found->second;
    ProgramValue value;
    value.edge = edge;
    const Facts& facts = facts_[edge];
    value.is_static = is_static(facts);
    value.view.type = facts.type.type;
    if (value.is_static) {
      std::span<int64_t> dims = arena_.array<int64_t>(facts.type.rank());
      for (size_t i = 0; i < dims.size(); ++i) dims[i] = facts.type.dims[i].value();
      value.view.dims = dims;
      value.bytes = value.view.bytes();
    }
    locate(edge, value);
    const auto index = static_cast<uint32_t>(values_.size());
    values_.push_back(value);
    index_[edge->id] = index;
    return index;
  }

  void locate(const Edge* edge, ProgramValue& value) {
    const Location location = lifetimes_.locations.at(edge->id);
    value.where = location.where;
    switch (location.where) {
      case Where::kArena:
        value.offset = offsets_[location.index] + location.offset.value();
        break;
      case Where::kInput:
      case Where::kOutput:
        value.index = location.index;
        value.offset = location.offset.value();
        break;
      case Where::kConstant:
        value.data = constant_data(edge, location);
        break;
      case Where::kOuter:
        value.index = outer_value(location.index);
        value.offset = location.offset.value();
        // A constant of an enclosing graph is a constant here.
        if (const ProgramValue& source = outer_->values[value.index]; source.where == Where::kConstant) {
          value.where = Where::kConstant;
          value.data = source.data == nullptr ? nullptr : source.data + value.offset;
        }
        break;
      case Where::kDynamic:
        break;
    }
  }

  // Data of the edge that the location names; `edge` itself or a view of it.
  std::byte* constant_data(const Edge* edge, const Location& location) {
    const Edge* root = edge;
    while (root->id != location.index) root = root->producer->inputs[0];
    if (root->data != nullptr) {
      std::byte* raw = model_.weights().raw(*root);
      return raw == nullptr ? nullptr : raw + location.offset.value();
    }
    auto [entry, added] = constants_.try_emplace(root->id, nullptr);
    if (added) entry->second = materialize(facts_[root], arena_).data;
    return entry->second + location.offset.value();
  }

  uint32_t outer_value(uint32_t edge_id) const {
    for (uint32_t i = 0; i < outer_->values.size(); ++i) {
      if (outer_->values[i].edge->id == edge_id && !outer_->values[i].view.packed) return i;
    }
    return kNoValue;
  }

  uint32_t packed_value(const Node& node, size_t input) {
    ProgramValue value;
    value.edge = node.inputs[input];
    value.where = Where::kConstant;
    value.view = value.edge->data->view();
    value.view.packed = true;
    value.view.data = nullptr;
    value.data = model_.weights().packed(node, input);
    values_.push_back(value);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  void fill_step(size_t s) {
    const StepInfo& info = lifetimes_.steps[s];
    const Node& node = *info.node;
    Step& step = program_->steps[s];
    step.node = &node;
    step.dynamic = info.dynamic;
    if (info.nested != StepInfo::kNone) step.nested_offset = offsets_[info.nested];
    std::span<uint32_t> inputs = arena_.array<uint32_t>(node.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool packed = node.inputs[i] != nullptr && model_.weights().is_packed(node, i);
      inputs[i] = packed ? packed_value(node, i) : value_of(node.inputs[i]);
    }
    std::span<uint32_t> outputs = arena_.array<uint32_t>(node.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = value_of(node.outputs[i]);
    step.inputs = inputs;
    step.outputs = outputs;
    step.first_argument = program_->argument_count;
    program_->argument_count += static_cast<uint32_t>(inputs.size() + outputs.size());
    if (node.op->control_flow) {
      for (const Edge* edge : captured_edges(node)) value_of(edge);
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
    if (node.op->bind != nullptr) {
      BindContext context(node, inputs, outputs, model_.options().threads, arena_);
      step.bound = node.op->bind(context);
    }
    step.cost = cost_of(NodeContext(node, inputs, outputs));
  }

  // A dynamic value is freed after the last step that reads it.
  void find_frees() {
    std::unordered_map<uint32_t, size_t> last;
    for (size_t s = 0; s < program_->steps.size(); ++s) {
      const Step& step = program_->steps[s];
      for (uint32_t i : step.inputs) last[i] = s;
      for (uint32_t i : step.outputs) last[i] = s;
      if (step.node->op->control_flow) {
        for (const Edge* edge : captured_edges(*step.node)) {
          if (const auto found = index_.find(edge->id); found != index_.end()) last[found->second] = s;
        }
      }
    }
    std::vector<std::vector<uint32_t>> frees(program_->steps.size());
    for (const auto& [index, step] : last) {
      if (index == kNoValue || program_->values[index].where != Where::kDynamic) continue;
      const bool is_output =
          std::find(program_->outputs.begin(), program_->outputs.end(), index) != program_->outputs.end();
      if (!is_output) frees[step].push_back(index);
    }
    for (size_t s = 0; s < frees.size(); ++s) program_->steps[s].frees = arena_.copy(frees[s]);
  }

  void find_dead_ranges() {
    if (!model_.options().check_plans) return;
    std::vector<DeadRange> dead;
    for (size_t b = 0; b < lifetimes_.buffers.size(); ++b) {
      const BufferInfo& buffer = lifetimes_.buffers[b];
      // What lives to the end may be an output that is copied after the last step.
      const bool to_the_end = buffer.upper == static_cast<int64_t>(lifetimes_.steps.size());
      if (buffer.live && !to_the_end) dead.push_back({buffer.upper - 1, offsets_[b], buffer.size.value()});
    }
    std::sort(dead.begin(), dead.end(),
              [](const DeadRange& a, const DeadRange& b) { return a.step < b.step; });
    program_->dead = arena_.copy(dead);
  }

  void build_bodies(size_t s) {
    Step& step = program_->steps[s];
    const auto found = lifetimes_.bodies.find(step.node->id);
    if (found == lifetimes_.bodies.end()) return;
    const std::vector<Graph*> graphs = bodies_of(*step.node);
    std::span<Program*> bodies = arena_.array<Program*>(graphs.size());
    for (size_t b = 0; b < graphs.size(); ++b) {
      if (found->second[b] == nullptr) continue;
      const Lifetimes& body = *found->second[b];
      const plan::Placement placement = place(body.problem(), model_.options().naive);
      bodies[b] = build_program(*graphs[b], facts_, body, placement, model_, program_, arena_);
    }
    step.bodies = bodies;
    if (step.node->op_type == "Loop") place_carried(step);
  }

  // Two copies of each carried value of known size, behind the body's own memory.
  void place_carried(Step& step) {
    Program* body = step.bodies[0];
    const size_t carried = step.node->inputs.size() - 2;
    std::span<int64_t> offsets = arena_.array<int64_t>(carried * 2);
    int64_t next = round_up(body->arena_bytes, 64);
    for (size_t i = 0; i < carried; ++i) {
      const Facts& facts = facts_[body->graph->inputs[i + 2]];
      const int64_t bytes = is_static(facts) ? round_up(value_bytes(facts).value(), 64) : 0;
      for (size_t copy = 0; copy < 2; ++copy, next += bytes) offsets[i * 2 + copy] = next;
    }
    body->carried_offsets = offsets;
  }

  const Graph& graph_;
  FactsTable& facts_;
  const Lifetimes& lifetimes_;
  const plan::Placement& placement_;
  const PreparedModel& model_;
  const Program* outer_;
  BumpArena& arena_;
  Program* program_ = nullptr;
  std::vector<int64_t> offsets_;
  std::vector<ProgramValue> values_;
  std::unordered_map<uint32_t, uint32_t> index_;        // edge id -> value
  std::unordered_map<uint32_t, std::byte*> constants_;  // materialized, by edge id
};

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

Program* build_program(const Graph& graph, FactsTable& facts, const Lifetimes& lifetimes,
                       const plan::Placement& placement, const PreparedModel& model, const Program* outer,
                       BumpArena& arena) {
  return ProgramBuilder(graph, facts, lifetimes, placement, model, outer, arena).build();
}

}  // namespace plimsoll
