#include "prepare/concrete_facts.h"

#include <algorithm>

#include "base/fail.h"
#include "ops/invoke.h"
#include "prepare/program_builder.h"
#include "prepare/value_facts.h"

namespace plimsoll {
namespace {

// Whatever is computed from a shape that passes (elements, bits, strides) fits 63 bits.
void check_size(const Edge& edge, const std::vector<int64_t>& shape) {
  int64_t bits = std::max(element_bits(edge.facts.type.type), 8);
  for (int64_t d : shape) {
    if (__builtin_mul_overflow(bits, std::max<int64_t>(d, 1), &bits))
      fail(ErrorCode::kInvalidArgument, "input '{}': no memory holds shape {}", edge.name, to_string(shape));
  }
}

// Puts the caller's shapes into the table, checked against what the model declares.
void bind_inputs(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes, FactsTable& facts,
                 BumpArena& arena) {
  std::vector<std::pair<Dim, int64_t>> symbols;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Edge& edge = *graph.inputs[i];
    const TypeInfo& declared = edge.facts.type;
    const std::vector<int64_t>& shape = shapes[i];
    if (declared.kind != ValueKind::kTensor) {
      facts[&edge] = edge.facts;  // nothing in it has a size
      continue;
    }
    if (declared.ranked && declared.rank() != shape.size())
      fail(ErrorCode::kInvalidArgument, "input '{}': expected {}, found shape {}", edge.name,
           to_string(declared), to_string(shape));
    std::span<Dim> dims = arena.array<Dim>(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      dims[d] = shape[d];
      if (shape[d] < 0)
        fail(ErrorCode::kInvalidArgument, "input '{}': dimension {} of shape {} is negative", edge.name, d,
             to_string(shape));
      if (!declared.ranked) continue;
      const Dim expected = declared.dims[d];
      if (expected.is_constant() && expected.value() != shape[d])
        fail(ErrorCode::kInvalidArgument, "input '{}': dimension {} is {} in the model, found {}", edge.name,
             d, expected.value(), shape[d]);
      if (expected.is_constant()) continue;
      for (const auto& [symbol, value] : symbols) {
        if (symbol == expected && value != shape[d])
          fail(ErrorCode::kInvalidArgument, "input '{}': dimension {} ('{}') is {}, but {} elsewhere",
               edge.name, d, expected.to_string(), shape[d], value);
      }
      symbols.emplace_back(expected, shape[d]);
    }
    Facts known;
    known.type = {ValueKind::kTensor, declared.type, ElementType::kUndefined, true, dims, nullptr};
    check_size(edge, shape);
    facts[&edge] = known;
  }
}

bool leaves_shapes_open(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [](const Edge* edge) {
    const TypeInfo& type = edge->facts.type;
    return !type.ranked ||
           std::any_of(type.dims.begin(), type.dims.end(), [](Dim d) { return !d.is_constant(); });
  });
}

// The model was found valid without these shapes: where it left a choice, what is wrong now was chosen wrong.
[[noreturn]] void blame_shapes(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes,
                               const Error& error) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i)
    text += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", graph.inputs[i]->name, to_string(shapes[i]));
  fail(ErrorCode::kInvalidArgument, "the input shapes {} do not fit the model: {}", text, error.what());
}

// Computes small results whose inputs are all known: shape arithmetic that needs no run.
GraphInferrer::Hook fold_small(BumpArena& arena, DimPool& pool) {
  return [&arena, &pool](const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs) {
    if (node.op->run == nullptr || !node.op->deterministic || inputs.empty()) return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] != nullptr && !is_known(inputs[i])) return;
    }
    for (const Facts& facts : outputs) {
      if (!facts.is_concrete() || value_bytes(facts).value() > kMaxKnownBytes) return;
      if (facts.type.type == ElementType::kString) return;  // characters would live in this arena
    }
    if (std::all_of(outputs.begin(), outputs.end(), is_known)) return;
    std::vector<TensorView> views(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] != nullptr) views[i] = materialize(inputs[i], arena);
    }
    std::vector<TensorView> results;
    try {
      results = invoke(node, views, arena, pool);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBudgetExceeded || error.code() == ErrorCode::kOutOfMemory) throw;
      return;  // the error belongs to the run, should it come there
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != nullptr) outputs[i].constant = arena.make<TensorView>(results[i]);
    }
  };
}

}  // namespace

FactsTable concrete_facts(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes,
                          BumpArena& arena, DimPool& pool) {
  FactsTable facts(graph, arena);
  bind_inputs(graph, shapes, facts, arena);
  try {
    GraphInferrer(facts, arena, pool, fold_small(arena, pool)).infer(graph);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidModel || !leaves_shapes_open(graph)) throw;
    blame_shapes(graph, shapes, error);
  }
  return facts;
}

}  // namespace plimsoll
