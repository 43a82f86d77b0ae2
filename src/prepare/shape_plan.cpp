#include "prepare/shape_plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/checked.h"
#include "prepare/concrete_facts.h"
#include "prepare/memory_plan.h"
#include "prepare/program_builder.h"

namespace plimsoll {
namespace {

std::string name_of(const Node* node) {
  return node == nullptr ? std::string() : std::string(node->name);
}

LifetimeOptions lifetime_options(const PreparedModel& model) {
  LifetimeOptions options;
  options.threads = model.options().threads;
  options.naive = model.options().naive;
  options.reuse = !options.naive;
  options.packs = &model.weights();
  if (model.options().compiled != nullptr) options.known = &model.options().compiled->placements;
  options.solved = model.options().solved.get();
  return options;
}

}  // namespace

ShapePlan::ShapePlan(const PreparedModel& model, std::vector<std::vector<int64_t>> shapes, Budget& budget,
                     Effort effort, Wanted wanted, int64_t most_bytes, std::optional<TableDetail> tell)
    : shapes_(std::move(shapes)), wanted_(std::move(wanted)), budget_("plan", 0, &budget), arena_(budget_) {
  const auto start = std::chrono::steady_clock::now();
  planned_after_load_ = model.weights().is_loaded();
  // What only planning needs leaves with this function.
  TransientMemory transient(budget_);
  DimPool pool(transient.arena());
  const Graph& graph = model.graph();
  FactsTable facts = concrete_facts(graph, shapes_, transient.arena(), pool);
  std::vector<Edge*> outputs;
  std::vector<Edge*> updated;
  for (size_t i = 0; i < (wanted_ ? wanted_->size() : graph.outputs.size()); ++i) {
    const size_t number = wanted_ ? (*wanted_)[i] : i;
    outputs.push_back(graph.outputs[number]);
    if (number >= graph.visible_outputs()) updated.push_back(graph.updated[number - graph.visible_outputs()]);
  }
  LifetimeOptions options = lifetime_options(model);
  if (wanted_) options.wanted = outputs;
  options.updated = updated;
  if (model.options().thorough && effort == Effort::kQuick) effort = Effort::kThorough;
  const MemoryConfig& named = model.options().memory_config;
  Proposal proposal = best_proposal(graph, facts, options, named.names_any() ? Effort::kQuick : effort,
                                    model.options().check_plans, transient, budget_, most_bytes);
  const std::span<Edge* const> visible = std::span(outputs).first(outputs.size() - updated.size());
  const auto clusters = [&] {
    return MemoryPlan(graph, facts, options, model.options().check_plans, visible, transient, budget_);
  };
  if (named.names_any() && !updated.empty()) {
    MemoryPlan plan = clusters();
    proposal = plan.with(plan.selected(named), transient);
  }
  const BuiltProgram built =
      build_program(facts, proposal.lifetimes, proposal.placement, model, arena_, transient);
  program_ = built.program;
  known_ = built.known;
  frames_ = arena_.array<Frame*>(static_cast<size_t>(model.options().concurrent_runs));
  for (Frame*& frame : frames_) frame = make_frame(*program_, arena_);
  if (planned_after_load_) bind_weights(model.weights());
  auto add_bound = [&](const Edge* edge) {
    bound_bytes_ = checked_add(bound_bytes_, value_bytes(facts[edge]).value());
  };
  // An input that a partial run does not read need not be there.
  const ScheduledValues& values = proposal.lifetimes.values;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (wanted_ && values[values.inputs()[i]].last_use == ScheduledValue::kNever) continue;
    if (graph.inputs[i]->facts.type.kind == ValueKind::kTensor) add_bound(graph.inputs[i]);
  }
  for (const Edge* edge : visible) {
    if (facts[edge].is_concrete()) add_bound(edge);
  }
  describe(proposal);
  planning_peak_bytes_ = budget_.report().peak_bytes;
  if (tell && !updated.empty()) cluster_table_ = memory_table(clusters().clusters(named), named.level, *tell);
  prepare_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void ShapePlan::bind_weights(const Weights& weights) {
  for (Frame* frame : frames_) bind_constants(*frame, weights, known_);
}

void ShapePlan::describe(const Proposal& proposal) {
  const Lifetimes& lifetimes = proposal.lifetimes;
  depends_on_data_ = lifetimes.depends_on_data;
  recomputation_ = proposal.recomputation;
  run_again_ = arena_.copy(recomputation_.nodes);
  recomputation_.nodes = {};
  most_live_bytes_ = proposal.most_live_bytes;
  planned_bytes_ = round_up(program_->arena_bytes, page_bytes());
  if (!lifetimes.steps.empty()) node_at_peak_ = name_of(program_->steps[proposal.peak_step].node);
  buffers_ = arena_.array<PlacedBuffer>(proposal.placement.offsets.size());
  size_t next = 0;
  for (const BufferInfo& buffer : lifetimes.buffers) {
    if (!buffer.live) continue;
    buffers_[next] = {buffer.edge,
                      program_->steps[static_cast<size_t>(buffer.lower)].node,
                      proposal.placement.offsets[next],
                      buffer.size.value(),
                      buffer.lower,
                      buffer.upper,
                      buffer.kind == BufferInfo::Kind::kScratch};
    ++next;
  }
}

Recomputation ShapePlan::recomputation() const {
  Recomputation result = recomputation_;
  result.nodes.assign(run_again_.begin(), run_again_.end());
  return result;
}

std::vector<PlannedBuffer> ShapePlan::buffers() const {
  std::vector<PlannedBuffer> result;
  result.reserve(buffers_.size());
  for (const PlacedBuffer& buffer : buffers_) {
    const std::string node = name_of(buffer.node);
    result.push_back({buffer.edge != nullptr ? std::string(buffer.edge->name) : node, node, buffer.offset,
                      buffer.size_bytes, buffer.first_step, buffer.end_step, buffer.scratch});
  }
  return result;
}

}  // namespace plimsoll
