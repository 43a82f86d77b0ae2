#include <algorithm>
#include <cstring>

#include "ops/invoke.h"
#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

TensorData keep(const TensorView& view, BumpArena& arena) {
  const auto size = static_cast<size_t>(view.bytes());
  const auto* bytes = static_cast<const std::byte*>(view.data);
  if (arena.bytes_to_release(bytes) == 0) {
    auto* copy = static_cast<std::byte*>(arena.allocate(size + 1, 64));
    if (size > 0) std::memcpy(copy, bytes, size);
    bytes = copy;
  }
  TensorData tensor;
  tensor.type = view.type;
  tensor.dims = arena.copy(view.dims);
  tensor.bytes = {bytes, size};
  return tensor;
}

// Integers that shape arithmetic knows, written down.
bool write_known_values(Edge& edge, Editor& editor) {
  const Facts& facts = edge.facts;
  if (!facts.values || !facts.is_concrete()) return false;
  const bool is_bool = facts.type.type == ElementType::kBool;
  if (!is_integer(facts.type.type) && !is_bool) return false;
  int64_t count = 1;
  for (Dim d : facts.type.dims) count *= d.value();
  if (count != static_cast<int64_t>(facts.values->size())) return false;
  for (Dim d : *facts.values) {
    if (!d.is_constant()) return false;
  }
  std::vector<int64_t> dims;
  for (Dim d : facts.type.dims) dims.push_back(d.value());
  TensorData tensor;
  tensor.type = facts.type.type;
  tensor.dims = editor.arena().copy(dims);
  auto write = [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<T> out = editor.arena().array<T>(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>((*facts.values)[i].value());
    tensor.bytes = std::as_bytes(std::span<const T>(out));
  };
  is_bool ? write(TypeTag<bool>{}) : visit_integer(tensor.type, write);
  editor.make_constant(edge, tensor);
  return true;
}

bool can_fold(const Node& node) {
  if (!node.op->deterministic || node.op->control_flow || node.op->run == nullptr) return false;
  const bool constant_inputs = std::all_of(node.inputs.begin(), node.inputs.end(),
                                           [](const Edge* e) { return e == nullptr || is_constant(e); });
  const bool concrete_outputs = std::all_of(node.outputs.begin(), node.outputs.end(), [](const Edge* e) {
    return e == nullptr || e->facts.type.kind == ValueKind::kTensor;
  });
  return constant_inputs && concrete_outputs;
}

// Constants that only this node reads go away with it.
int64_t replaced_bytes(const Node& node, const Editor& editor) {
  int64_t bytes = 0;
  for (const Edge* e : node.inputs) {
    if (e != nullptr && editor.use_count(*e) == 1) bytes += e->constant->bytes();
  }
  return bytes;
}

// What dequantizes a weight, where it is written out.
bool is_arithmetic(const Node& node) {
  constexpr const char* kOperators[] = {"Mul", "Add", "Sub", "Cast"};
  return std::any_of(std::begin(kOperators), std::end(kOperators),
                     [&](const char* op) { return is_op(&node, op); });
}

// Whether what becomes of the value is the weight of a convolution, which is packed once if it is constant:
// else every run makes it, and packs it, and has room for both.
bool becomes_convolution_weight(const Edge& value, const Editor& editor) {
  constexpr int kMostSteps = 4;
  const Edge* at = &value;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* user = editor.only_user(*at);
    if (user == nullptr) return false;
    if (is_op(user, "Conv")) return user->input(1) == at;
    const auto is_known = [&](const Edge* e) { return e == at || (e != nullptr && is_constant(e)); };
    if (!is_arithmetic(*user) || !std::all_of(user->inputs.begin(), user->inputs.end(), is_known))
      return false;
    at = user->outputs[0];
  }
  return false;
}

// The most bytes that the node may be replaced by.
int64_t cap_of(const Node& node, const Editor& editor, int64_t cap) {
  const bool is_weight = node.outputs[0] != nullptr && becomes_convolution_weight(*node.outputs[0], editor);
  return is_weight ? 4 * cap : cap;
}

int64_t known_output_bytes(const Node& node) {
  int64_t bytes = 0;
  for (const Edge* e : node.outputs) {
    if (e == nullptr) continue;
    if (!e->facts.is_concrete()) continue;  // depends on the data, which is small if the inputs are
    int64_t count = 1;
    for (Dim d : e->facts.type.dims) count = (Dim(count) * d).value();
    bytes += element_bytes(e->facts.type.type, count);
  }
  return bytes;
}

bool fits(const Node& node, const Editor& editor, int64_t cap) {
  const int64_t bytes = known_output_bytes(node);
  return bytes <= cap || bytes < replaced_bytes(node, editor);
}

// The data where run may read it: aligned to its element.
TensorView aligned(const TensorView& view, BumpArena& arena) {
  if (reinterpret_cast<uintptr_t>(view.data) % 16 == 0) return view;
  const auto size = static_cast<size_t>(view.bytes());
  TensorView copy = view;
  copy.data = static_cast<std::byte*>(arena.allocate(size + 64, 64));
  if (size > 0) std::memcpy(copy.data, view.data, size);
  return copy;
}

// Matrix products and convolutions read a weight through a Transpose; a folded one would be a copy
// that, unlike the file's pages, cannot be dropped.
bool is_large_movement(const Node& node) {
  constexpr int64_t kLargeBytes = 64 << 10;
  return is_op(&node, "Transpose") && node.input(0)->constant->bytes() > kLargeBytes;
}

// The results in `memory`, or none if the data is refused: the error belongs to the run, should it come
// there.
std::vector<TensorView> evaluate(const Node& node, BumpArena& scratch, BumpArena& memory, DimPool& dims) {
  std::vector<TensorView> inputs;
  for (const Edge* e : node.inputs)
    inputs.push_back(e == nullptr ? TensorView{} : aligned(*e->constant, scratch));
  try {
    return invoke(node, inputs, memory, dims);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBudgetExceeded || error.code() == ErrorCode::kOutOfMemory) throw;
    return {};
  }
}

// Gives back the bytes of a folded constant that nothing uses any more.
void release_unused(Edge& edge, const Editor& editor) {
  const std::byte* const bytes = edge.data->bytes.data();
  auto& list = edge.graph->initializers;
  list.resize_down(static_cast<size_t>(std::remove(list.begin(), list.end(), &edge) - list.begin()));
  edge.data = nullptr;
  edge.constant = nullptr;
  // The same bytes may be another constant's, under another shape.
  const bool is_shared = std::any_of(editor.graphs().begin(), editor.graphs().end(), [&](Graph* graph) {
    return std::any_of(graph->initializers.begin(), graph->initializers.end(),
                       [&](const Edge* e) { return e->data != nullptr && e->data->bytes.data() == bytes; });
  });
  if (!is_shared) editor.arena().release(bytes);
}

// `folded`: the constants made so far that can be given back.
bool fold(Node& node, Editor& editor, int64_t most, std::pmr::vector<Edge*>& folded) {
  if (!can_fold(node) || is_large_movement(node)) return false;
  const int64_t cap = cap_of(node, editor, most);
  if (!fits(node, editor, cap)) return false;
  BumpArena scratch(editor.arena().budget());
  DimPool dims(scratch);
  // What leaves nothing else behind makes its result where it stays: a large one is there once.
  const bool stays =
      is_arithmetic(node) && BumpArena::is_large(static_cast<size_t>(known_output_bytes(node)));
  BumpArena& memory = stays ? editor.arena() : scratch;
  const std::vector<TensorView> results = evaluate(node, scratch, memory, dims);
  if (results.empty()) return false;
  int64_t bytes = 0;
  for (const TensorView& view : results) {
    if (view.type == ElementType::kString) return false;  // characters live in the scratch
    if (view) bytes += view.bytes();
  }
  if (bytes > cap && bytes >= replaced_bytes(node, editor)) return false;
  const std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
  const std::vector<Edge*> outputs(node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    editor.make_constant(*outputs[i], keep(results[i], editor.arena()));
    if (editor.arena().bytes_to_release(outputs[i]->data->bytes.data()) > 0) folded.push_back(outputs[i]);
  }
  for (Edge* input : inputs) {
    const auto found = std::find(folded.begin(), folded.end(), input);
    if (found == folded.end() || editor.use_count(*input) > 0) continue;
    folded.erase(found);
    release_unused(*input, editor);
  }
  return true;
}

// A constant under another shape is the same bytes.
bool fold_view(Node& node, Editor& editor) {
  const std::string_view op = node.op_type;
  if (!node.domain.empty() || (op != "Reshape" && op != "Squeeze" && op != "Unsqueeze" && op != "Flatten"))
    return false;
  const Edge* source = node.input(0);
  Edge* result = node.outputs[0];
  if (source->data == nullptr || !is_constant(source) || !result->facts.is_concrete()) return false;
  std::vector<int64_t> dims;
  for (Dim d : result->facts.type.dims) dims.push_back(d.value());
  TensorData tensor = *source->data;
  tensor.dims = editor.arena().copy(dims);
  editor.make_constant(*result, tensor);
  return true;
}

// A Constant node's tensor is an initializer as it stands, wherever its bytes are.
bool adopt_constant(Node& node, Editor& editor) {
  if (!is_op(&node, "Constant")) return false;
  const Attribute* value = node.attribute("value");
  if (value == nullptr || value->tensor == nullptr) return false;
  editor.make_constant(*node.outputs[0], *value->tensor);
  return true;
}

// Integers, and what has one element.
bool is_no_parameter(const Edge* edge) {
  if (edge == nullptr) return true;
  const TypeInfo& type = edge->facts.type;
  if (type.kind != ValueKind::kTensor) return false;
  if (is_integer(type.type) || type.type == ElementType::kBool) return true;
  return edge->facts.is_concrete() && product(type.dims) == Dim(1);
}

bool is_dequantization(const Node& node) {
  return is_op(&node, "DequantizeLinear") || is_op(&node, "DequantizeLinear", kMicrosoftDomain);
}

bool fold_graph(Graph& root, const OptimizeOptions& options, bool dequantizes) {
  Editor editor(root, options.tables);
  std::pmr::vector<Edge*> folded(editor.memory());
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || adopt_constant(*node, editor) || fold_view(*node, editor)) continue;
      const std::vector<Edge*> outputs(node->outputs.begin(), node->outputs.end());
      for (Edge* edge : outputs) {
        if (edge != nullptr && !node->op->control_flow) write_known_values(*edge, editor);
      }
      if (editor.alive(*node) && (dequantizes || !is_dequantization(*node)))
        fold(*node, editor, options.fold_bytes_cap, folded);
    }
  }
  return editor.finish();
}

}  // namespace

bool fold_sizes(Graph& root, const OptimizeOptions& options) {
  Editor editor(root);
  std::pmr::vector<Edge*> folded(editor.memory());
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || node->op->control_flow) continue;
      if (!std::all_of(node->outputs.begin(), node->outputs.end(), is_no_parameter)) continue;
      if (adopt_constant(*node, editor)) continue;
      const std::vector<Edge*> outputs(node->outputs.begin(), node->outputs.end());
      for (Edge* edge : outputs) {
        if (edge != nullptr) write_known_values(*edge, editor);
      }
      const bool reads_parameters = !std::all_of(node->inputs.begin(), node->inputs.end(), is_no_parameter);
      if (editor.alive(*node) && !reads_parameters) fold(*node, editor, options.fold_bytes_cap, folded);
    }
  }
  return editor.finish();
}

bool fold_constants(Graph& root, const OptimizeOptions& options) {
  return fold_graph(root, options, true);
}

bool fold_all_but_dequantized(Graph& root, const OptimizeOptions& options) {
  return fold_graph(root, options, false);
}

}  // namespace plimsoll
