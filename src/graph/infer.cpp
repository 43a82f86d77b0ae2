#include "graph/infer.h"

#include "base/overflow.h"
#include "graph/bodies.h"
#include "memory/transient_memory.h"

namespace plimsoll {

Facts constant_facts(const Edge& edge) {
  Facts facts = edge.facts;
  facts.constant = edge.constant;
  return facts;
}

std::vector<Facts> facts_of_edges(std::span<Edge* const> edges) {
  std::vector<Facts> facts(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] == nullptr) continue;
    facts[i] = edges[i]->facts;
    if (edges[i]->constant != nullptr) facts[i].constant = edges[i]->constant;
  }
  return facts;
}

void GraphInferrer::infer_node(const Node& node) {
  std::vector<Facts> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] != nullptr) inputs[i] = table_[node.inputs[i]];
  }
  std::vector<Facts> outputs = plimsoll::infer_node(node, inputs, arena_, pool_, this);
  if (hook_) hook_(node, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != nullptr) table_[node.outputs[i]] = outputs[i];
  }
}

void GraphInferrer::infer(const Graph& graph) {
  for (const Edge* edge : graph.initializers) table_[edge] = constant_facts(*edge);
  for (const Node* node : graph.nodes) infer_node(*node);
}

std::vector<Facts> GraphInferrer::infer(const Graph& body, std::span<const Facts> inputs) {
  for (size_t i = 0; i < body.inputs.size() && i < inputs.size(); ++i) table_[body.inputs[i]] = inputs[i];
  try {
    infer(body);
  } catch (...) {
    // Nothing is known of a body that these facts do not fit.
    for (const Edge* edge : body.outputs) {
      if (edge->graph == &body) table_[edge] = Facts{};
    }
    throw;
  }
  std::vector<Facts> outputs;
  for (const Edge* edge : body.outputs) outputs.push_back(table_[edge]);
  return outputs;
}

namespace {

void write_facts(Graph& top, const FactsTable& table) {
  top.for_each_graph([&](Graph& graph) {
    if (graph.outer() != nullptr) {
      for (Edge* edge : graph.inputs) edge->facts = table[edge];
    }
    for (Node* node : graph.nodes) {
      for (Edge* edge : node->outputs) {
        if (edge != nullptr) edge->facts = table[edge];
      }
    }
  });
}

}  // namespace

void infer_graph(Graph& root) {
  TransientMemory transient(root.arena().budget());
  FactsTable table(root, transient.arena());
  for (const Edge* edge : root.inputs) table[edge] = edge->facts;
  GraphInferrer(table, root.arena(), root.dims()).infer(root);
  write_facts(root, table);
}

std::vector<Facts> infer_node(const Node& node, std::span<const Facts> inputs, BumpArena& arena,
                              DimPool& pool, BodyInferrer* bodies) {
  std::vector<Facts> outputs(node.outputs.size());
  InferContext context(node, inputs, outputs, arena, pool, bodies);
  try {
    node.op->infer(context);
  } catch (const Overflow& overflow) {
    context.reject("{}", overflow.what());
  }
  return outputs;
}

void infer_outputs(Node& node) {
  Graph& graph = *node.graph;
  const std::vector<Facts> inputs = facts_of_edges(node.inputs);
  std::vector<Facts> outputs;
  if (node.op->control_flow == nullptr) {
    outputs = infer_node(node, inputs, graph.arena(), graph.dims());
  } else {
    TransientMemory transient(graph.arena().budget());
    FactsTable table(graph.root(), transient.arena());
    const std::vector<Edge*> captured = captured_edges(node);
    const std::vector<Facts> known = facts_of_edges(captured);
    for (size_t i = 0; i < captured.size(); ++i) table[captured[i]] = known[i];
    GraphInferrer bodies(table, graph.arena(), graph.dims());
    outputs = infer_node(node, inputs, graph.arena(), graph.dims(), &bodies);
    for (Graph* body : bodies_of(node)) write_facts(*body, table);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != nullptr) node.outputs[i]->facts = outputs[i];
  }
}

}  // namespace plimsoll
