#include "prepare/table_rows.h"

#include <algorithm>

#include "graph/infer.h"
#include "graph/op_def.h"

namespace plimsoll {
namespace {

constexpr int64_t kNominalSize = 8;  // of a dimension that is not known

// With every size known. False if there is none to know.
bool make_concrete(Facts& facts, BumpArena& arena) {
  if (facts.is_concrete()) return true;
  if (!facts.type.ranked || facts.type.kind != ValueKind::kTensor) return false;
  const std::span<Dim> dims = arena.array<Dim>(facts.type.rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim dim = facts.type.dims[i];
    dims[i] = std::max<int64_t>(0, dim.evaluate([](std::string_view) { return kNominalSize; }));
  }
  facts.type.dims = dims;
  return true;
}

class Estimate {
 public:
  Estimate(std::span<Edge* const> tables, BumpArena& arena) : tables_(tables), arena_(arena) {}

  void add(const Node& node) {
    std::vector<Facts> inputs = facts_of_edges(node.inputs), outputs = facts_of_edges(node.outputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] != nullptr && !make_concrete(inputs[i], arena_)) return;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != nullptr && !make_concrete(outputs[i], arena_)) return;
    }
    const int64_t read = rows_read(node, outputs);
    if (read > 0) {
      rows_ += static_cast<double>(read);
      return;
    }
    const Cost cost = cost_of(NodeContext(node, inputs, outputs));
    constexpr double kOperationsPerNanosecond = 100, kBytesPerNanosecond = 20;
    nanoseconds_ += std::max(static_cast<double>(cost.operations) / kOperationsPerNanosecond,
                             static_cast<double>(cost.bytes) / kBytesPerNanosecond);
  }

  bool rows_take_long() const {
    constexpr double kNanosecondsPerRow = 400, kShare = 1.0 / 16;
    return rows_ * kNanosecondsPerRow > kShare * nanoseconds_;
  }

 private:
  int64_t rows_read(const Node& node, std::span<const Facts> outputs) const {
    int64_t rows = 0;
    for (const Edge* edge : node.inputs) {
      if (edge == nullptr || std::find(tables_.begin(), tables_.end(), edge) == tables_.end()) continue;
      const int64_t row = std::max<int64_t>(
          1, edge->data->view().elements() / std::max<int64_t>(1, edge->data->dims.front()));
      rows += product(outputs[0].type.dims).value() / row;
    }
    return rows;
  }

  std::span<Edge* const> tables_;
  BumpArena& arena_;
  double rows_ = 0, nanoseconds_ = 0;
};

}  // namespace

bool rows_take_long(Graph& root, std::span<Edge* const> tables, TransientMemory& memory) {
  constexpr size_t kMostBytes = 64 << 20;  // what speed may cost
  size_t bytes = 0;
  for (const Edge* table : tables) bytes += table->data->bytes.size();
  if (tables.empty() || bytes > kMostBytes) return false;
  Estimate estimate(tables, memory.arena());
  try {
    root.for_each_graph([&](Graph& graph) {
      for (const Node* node : graph.nodes) estimate.add(*node);
    });
  } catch (const Error&) {
    return false;  // beyond all numbers
  }
  return estimate.rows_take_long();
}

}  // namespace plimsoll
