#include <cstring>
#include <string>
#include <unordered_map>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr int64_t kSmallConstantBytes = 512;

template <typename T>
void append(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void append_text(std::string& key, std::string_view text) {
  append(key, text.size());
  key.append(text);
}

template <typename T>
void append_list(std::string& key, std::span<const T> list) {
  append(key, list.size());
  key.append(reinterpret_cast<const char*>(list.data()), list.size_bytes());
}

// False if the attribute holds something that is not compared.
bool append_attribute(std::string& key, const Attribute& a) {
  if (a.graph != nullptr || !a.graphs.empty() || a.sparse != nullptr || !a.tensors.empty() ||
      !a.strings.empty() || a.type_info != nullptr)
    return false;
  append_text(key, a.name);
  append(key, a.type);
  append(key, a.f);
  append(key, a.i);
  append_text(key, a.s);
  append_list(key, a.floats);
  append_list(key, a.ints);
  if (a.tensor == nullptr) return true;
  if (a.tensor->type == ElementType::kString || a.tensor->bytes.size() > kSmallConstantBytes) return false;
  append(key, a.tensor->type);
  append_list(key, a.tensor->dims);
  append_list(key, a.tensor->bytes);
  return true;
}

// Equal keys compute equal values. Empty if the node must stay by itself.
std::string key_of(const Node& node) {
  if (!node.op->deterministic || node.op->control_flow) return {};
  std::string key;
  append(key, node.op);
  append(key, node.opset);
  append(key, node.instance);
  append(key, node.inputs.size());
  for (const Edge* input : node.inputs) append(key, input);
  append(key, node.outputs.size());
  for (const Attribute& a : node.attributes) {
    if (!append_attribute(key, a)) return {};
  }
  return key;
}

std::string key_of(const TensorData& tensor) {
  if (tensor.type == ElementType::kString || static_cast<int64_t>(tensor.bytes.size()) > kSmallConstantBytes)
    return {};
  std::string key;
  append(key, tensor.type);
  append_list(key, tensor.dims);
  append_list(key, tensor.bytes);
  return key;
}

std::string key_of(const Edge& edge) {
  return edge.data == nullptr || edge.persistent ? std::string() : key_of(*edge.data);
}

// The first of equals. Keys are made again to be compared: those of a large model would take more than the
// model.
template <typename T>
class Firsts {
 public:
  Firsts(Editor& editor, size_t most) : by_hash_(editor.memory()) { by_hash_.reserve(most); }
  // An earlier one that equals `item`; null if there is none, and `item` is remembered, or stays by itself.
  T* find_or_add(T& item) {
    const std::string key = key_of(item);
    if (key.empty()) return nullptr;
    const size_t hash = std::hash<std::string>()(key);
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto at = begin; at != end; ++at) {
      if (key_of(*at->second) == key) return at->second;
    }
    by_hash_.emplace(hash, &item);
    return nullptr;
  }

 private:
  std::pmr::unordered_multimap<size_t, T*> by_hash_;
};

void share_constants(Graph& graph, Editor& editor) {
  Firsts<Edge> firsts(editor, graph.initializers.size());
  for (Edge* edge : graph.initializers) {
    Edge* first = firsts.find_or_add(*edge);
    if (first != nullptr && first != edge) editor.replace(*edge, *first);
  }
}

// Replaces the outputs of `node` by those of `first`. Optional outputs must be present alike.
void merge(Node& node, Node& first, Editor& editor) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if ((node.outputs[i] == nullptr) != (first.outputs[i] == nullptr)) return;
  }
  const std::vector<Edge*> outputs(node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    // An output of the graph keeps its own node: renaming would take the first one's edge away.
    if (outputs[i] != nullptr && !editor.is_graph_output(*outputs[i]))
      editor.replace(*outputs[i], *first.outputs[i]);
  }
}

}  // namespace

bool share_subexpressions(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    share_constants(*graph, editor);
    Firsts<Node> firsts(editor, graph->nodes.size());
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node)) continue;
      if (Node* first = firsts.find_or_add(*node)) merge(*node, *first, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
