#include <algorithm>
#include <set>

#include "prepare/lifetimes.h"
#include "prepare/prepared_model.h"

namespace plimsoll {
namespace {

// The largest of many expressions: those that another one covers for all sizes drop out.
Dim most(const std::vector<Dim>& expressions) {
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

// A type in dimensions of another pool.
TypeInfo imported(const TypeInfo& type, BumpArena& arena, DimPool& pool) {
  TypeInfo result = type;
  std::span<Dim> dims = arena.array<Dim>(type.dims.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = pool.import(type.dims[i]);
  result.dims = dims;
  if (type.element != nullptr) result.element = arena.make<TypeInfo>(imported(*type.element, arena, pool));
  return result;
}

}  // namespace

Formula make_formula(const PreparedModel& model, BumpArena& transient, DimPool& pool) {
  const Graph& graph = model.graph();
  FactsTable facts(graph, transient);
  for (const Edge* edge : graph.inputs) {
    facts[edge] = edge->facts;
    facts[edge].type = imported(edge->facts.type, transient, pool);
  }
  GraphInferrer(facts, transient, pool).infer(graph);
  LifetimeOptions options;
  options.threads = model.options().threads;
  options.naive = model.options().naive;
  options.reuse = !options.naive;
  options.pieces = false;
  options.is_packed = [&](const Node& node, size_t input) { return model.weights().is_packed(node, input); };
  const Lifetimes lifetimes = analyze(graph, facts, options);

  Formula formula;
  formula.depends_on_data = lifetimes.depends_on_data;
  formula.run_bytes = most(lifetimes.live_bytes()) + lifetimes.scratch_bytes();
  std::set<std::string> symbols;
  for (const Edge* edge : graph.inputs) {
    formula.run_bytes = formula.run_bytes + value_bytes(facts[edge]);
    for (Dim d : facts[edge].type.dims) {
      if (!d.is_constant()) symbols.insert(d.to_string());
    }
  }
  for (const Edge* edge : graph.outputs) {
    if (is_static(facts[edge])) formula.run_bytes = formula.run_bytes + value_bytes(facts[edge]);
  }
  formula.symbols.assign(symbols.begin(), symbols.end());
  return formula;
}

}  // namespace plimsoll
