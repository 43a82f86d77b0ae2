#include <algorithm>
#include <set>

#include "prepare/lifetimes.h"
#include "prepare/prepared_model.h"

namespace plimsoll {
namespace {

// The largest of many expressions: those that another one covers for all sizes drop out.
Dim most(std::span<const Dim> expressions) {
  std::vector<Dim> candidates;
  for (Dim e : expressions) {
    if (std::any_of(candidates.begin(), candidates.end(), [&](Dim c) { return known_at_least(c, e); }))
      continue;
    candidates.erase(
        std::remove_if(candidates.begin(), candidates.end(), [&](Dim c) { return known_at_least(e, c); }),
        candidates.end());
    candidates.push_back(e);
  }
  Dim result = 0;
  for (Dim c : candidates) result = max(result, c);
  return result;
}

// The facts of an input with dimensions of another pool.
Facts in_pool(const Facts& facts, DimPool& pool, BumpArena& arena) {
  Facts result = facts;
  std::span<Dim> dims = arena.array<Dim>(facts.type.rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i] = pool.import(facts.type.dims[i]);
  }
  result.type.dims = dims;
  return result;
}

}  // namespace

Formula make_formula(const PreparedModel& model) {
  const Graph& graph = model.graph();
  Budget planning("planning", 0);
  TransientMemory memory(planning);
  DimPool pool(memory.arena());
  FactsTable facts(graph, memory.arena());
  for (const Edge* edge : graph.inputs) facts[edge] = in_pool(edge->facts, pool, memory.arena());
  GraphInferrer(facts, memory.arena(), pool).infer(graph);
  LifetimeOptions options;
  options.threads = model.options().threads;
  options.naive = model.options().naive;
  options.reuse = !options.naive;
  options.pieces = false;
  options.packs = &model.weights();
  options.updated = graph.updated.span();
  const Lifetimes lifetimes = analyze(graph, facts, file_order(graph, memory), options, memory);

  Formula formula;
  formula.depends_on_data = lifetimes.depends_on_data;
  Dim run_bytes = most(lifetimes.live_bytes());
  std::set<std::string> symbols;
  for (const Edge* edge : graph.inputs) {
    run_bytes = run_bytes + value_bytes(facts[edge]);
    for (Dim d : facts[edge].type.dims) {
      if (!d.is_constant()) symbols.insert(d.to_string());
    }
  }
  for (const Edge* edge : graph.outputs.span().first(graph.visible_outputs())) {
    if (is_static(facts[edge])) run_bytes = run_bytes + value_bytes(facts[edge]);
  }
  formula.symbols.assign(symbols.begin(), symbols.end());
  const int64_t fixed = model.memory_bytes() + model.source_bytes() + model.defaults_bytes() +
                        model.weights().weights_bytes() + model.weights().packed_bytes() +
                        model.weights().state_bytes(Account::kGradients) +
                        model.weights().state_bytes(Account::kOptimizer);
  run_bytes = run_bytes * Dim(model.options().concurrent_runs) + Dim(fixed);
  // Small shapes need less than loading does.
  const int64_t passing = model.weights().passing_bytes() + model.weights().largest_raw_bytes();
  formula.text = max(run_bytes, Dim(fixed + passing)).to_string();
  return formula;
}

}  // namespace plimsoll
