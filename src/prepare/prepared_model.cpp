#include "prepare/prepared_model.h"

#include "ops/registry.h"
#include "optimize/pipeline.h"
#include "prepare/lower.h"

namespace plimsoll {

void drop_defaulted_inputs(Graph& graph) {
  size_t kept = 0;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i]->data == nullptr) graph.inputs[kept++] = graph.inputs[i];
  }
  graph.inputs.resize_down(kept);
}

namespace {

// Of what the caller's sequences, optionals and maps hold, only the element type is sure: files say little
// about the rest, and sizes with a name would be those of no particular element.
TypeInfo without_sizes(const TypeInfo& type, BumpArena& arena) {
  TypeInfo open = type;
  open.ranked = false;
  open.dims = {};
  if (type.element != nullptr) open.element = arena.make<TypeInfo>(without_sizes(*type.element, arena));
  return open;
}

void open_element_sizes(Graph& graph) {
  for (Edge* input : graph.inputs) {
    const TypeInfo& type = input->facts.type;
    if (type.kind == ValueKind::kSparseTensor)
      fail(ErrorCode::kNotImplemented, "input '{}': type {} is not implemented", input->name,
           to_string(type));
    if (type.kind == ValueKind::kTensor) continue;
    if (tensor_type(type) == ElementType::kUndefined)
      fail(ErrorCode::kInvalidModel, "input '{}': expected a type of its elements, found none", input->name);
    input->facts.type = without_sizes(type, graph.arena());
  }
}

}  // namespace

PreparedModel::PreparedModel(const std::string& path, const PrepareOptions& options, Budget& budget)
    : options_(options),
      budget_("model", 0, &budget),
      source_charge_(budget_, Account::kWeights, 0),
      arena_(budget_),
      dims_(arena_),
      graph_(arena_, dims_) {
  LoadOptions load;
  load.access = options.read_into_memory ? MappedFile::Access::kRead : MappedFile::Access::kMap;
  load.admit = [this](int64_t bytes) { source_charge_.grow(bytes); };
  read_model(path, graph_, source_, load);
}

PreparedModel::PreparedModel(std::span<const std::byte> bytes, const PrepareOptions& options, Budget& budget)
    : options_(options), budget_("model", 0, &budget), arena_(budget_), dims_(arena_), graph_(arena_, dims_) {
  read_model(bytes, graph_, {});
}

void PreparedModel::prepare() {
  drop_defaulted_inputs(graph_);
  open_element_sizes(graph_);
  inline_functions(graph_);
  resolve(graph_);
  infer_graph(graph_);
  // What is to be written again keeps the operators that it has.
  if (!options_.keep_opset && decompose_operators(graph_)) infer_graph(graph_);
  if (lower_values(graph_)) infer_graph(graph_);
  OptimizeOptions optimization;
  optimization.level = options_.level;
  optimization.stop_after = options_.stop_after_pass;
  optimization.keep_opset = options_.keep_opset;
  optimization.only_onnx = options_.only_onnx;
  optimization.check_passes = options_.check_passes;
  optimize(graph_, optimization);
  infer_graph(graph_);
  weights_ = std::make_unique<Weights>(graph_, options_.threads);
  prepare_peak_ = budget_.report()[Account::kSession].peak_bytes;
}

void PreparedModel::load_weights() {
  weights_->load(budget_, [this](std::span<const std::byte> range) { source_.drop(range); });
}

}  // namespace plimsoll
