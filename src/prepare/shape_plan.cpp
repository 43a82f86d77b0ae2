#include "prepare/shape_plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/checked.h"
#include "memory/huge_page.h"
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
  if (!load(model, effort)) plan(model, effort, most_bytes, tell);
  planning_peak_bytes_ = budget_.report().peak_bytes;
  prepare_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// From a compiled file: the plan that plan() would make again.
bool ShapePlan::load(const PreparedModel& model, Effort effort) {
  const PrepareOptions& options = model.options();
  if (model.image_begin() == nullptr || effort != Effort::kQuick || options.thorough || wanted_ ||
      options.memory_config.names_any())
    return false;
  const auto& plans = options.compiled->plans;
  const auto found =
      std::find_if(plans.begin(), plans.end(), [&](const auto& stored) { return stored.shapes == shapes_; });
  if (found == plans.end()) return false;
  std::vector<const std::byte*> begins = {nullptr, model.image_begin()};
  for (const std::span<const std::byte> part : options.compiled->places) begins.push_back(part.data());
  std::byte* const begin = found->image.load(arena_, begins);
  kept_ = reinterpret_cast<Kept*>(begin + found->image.root_offset());
  make_frames(model);
  return true;
}

std::optional<std::vector<std::byte>> ShapePlan::image(const PreparedModel& model,
                                                       std::span<const Place> others) const {
  if (!frames_.empty() || !recomputation_.empty()) return {};
  std::vector<Place> places = {place_of(arena_), place_of(model.arena())};
  places.insert(places.end(), others.begin(), others.end());
  return write_image(arena_, kept_, places, frame_bytes(*kept_->program) + sizeof(Frame*));
}

void ShapePlan::make_frames(const PreparedModel& model) {
  frames_ = arena_.array<Frame*>(static_cast<size_t>(model.options().concurrent_runs));
  for (Frame*& frame : frames_) frame = make_frame(*kept_->program, arena_);
  if (planned_after_load_) bind_weights(model.weights());
}

void ShapePlan::plan(const PreparedModel& model, Effort effort, int64_t most_bytes,
                     std::optional<TableDetail> tell) {
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
  kept_ = arena_.make<Kept>();
  kept_->program = built.program;
  kept_->known = built.known;
  make_frames(model);
  auto add_bound = [&](const Edge* edge) {
    kept_->bound_bytes = checked_add(kept_->bound_bytes, value_bytes(facts[edge]).value());
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
  if (effort == Effort::kQuick) fill_huge_page(model);
  if (tell && !updated.empty()) cluster_table_ = memory_table(clusters().clusters(named), named.level, *tell);
}

void ShapePlan::bind_weights(const Weights& weights) {
  for (Frame* frame : frames_) bind_constants(*frame, weights, kept_->known);
}

// Small pages cost as much for each 280 KiB as a huge one for 2 MiB.
void ShapePlan::fill_huge_page(const PreparedModel& model) {
  constexpr int64_t kWorthAHugePage = kHugePageBytes / 4, kShare = 64;
  const int64_t planned = kept_->planned_bytes, whole = round_up(planned, kHugePageBytes);
  const int64_t more = whole - planned;
  const int64_t beside = model.weights().packed_bytes() + model.weights().weights_bytes();
  if (more <= kHugePageBytes - kWorthAHugePage && more <= (beside + planned) / kShare)
    kept_->planned_bytes = whole;
}

void ShapePlan::describe(const Proposal& proposal) {
  const Lifetimes& lifetimes = proposal.lifetimes;
  kept_->depends_on_data = lifetimes.depends_on_data;
  recomputation_ = proposal.recomputation;
  run_again_ = arena_.copy(recomputation_.nodes);
  recomputation_.nodes = {};
  kept_->most_live_bytes = proposal.most_live_bytes;
  kept_->planned_bytes = round_up(kept_->program->arena_bytes, page_bytes());
  if (!lifetimes.steps.empty()) kept_->at_peak = kept_->program->steps[proposal.peak_step].node;
  kept_->buffers = arena_.array<PlacedBuffer>(proposal.placement.offsets.size());
  size_t next = 0;
  for (const BufferInfo& buffer : lifetimes.buffers) {
    if (!buffer.live) continue;
    kept_->buffers[next] = {buffer.edge,
                            kept_->program->steps[static_cast<size_t>(buffer.lower)].node,
                            proposal.placement.offsets[next],
                            buffer.size.value(),
                            buffer.lower,
                            buffer.upper,
                            buffer.kind == BufferInfo::Kind::kScratch};
    ++next;
  }
}

std::string_view ShapePlan::node_at_peak() const {
  return kept_->at_peak == nullptr ? std::string_view() : kept_->at_peak->name;
}

Recomputation ShapePlan::recomputation() const {
  Recomputation result = recomputation_;
  result.nodes.assign(run_again_.begin(), run_again_.end());
  return result;
}

std::vector<PlannedBuffer> ShapePlan::buffers() const {
  std::vector<PlannedBuffer> result;
  result.reserve(kept_->buffers.size());
  for (const PlacedBuffer& buffer : kept_->buffers) {
    const std::string node = name_of(buffer.node);
    result.push_back({buffer.edge != nullptr ? std::string(buffer.edge->name) : node, node, buffer.offset,
                      buffer.size_bytes, buffer.first_step, buffer.end_step, buffer.scratch});
  }
  return result;
}

}  // namespace plimsoll
