// Graph, Node, Edge: a model in memory.
//
// Everything of a model, nested bodies included, lives in one BumpArena and dies with it: nodes and
// edges are plain structs, names are views into the arena. Rewrites leave what they replace behind in
// the arena. Not thread-safe; a Graph that nobody changes may be read by many threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "memory/bump_arena.h"
#include "plimsoll/memory_report.h"
#include "tensor/tensor.h"

namespace plimsoll {

class Graph;
class MappedFile;
struct Node;
struct OpDef;

// Raw tensor data of an initializer or attribute. `bytes` may be unaligned and may point into a
// mapped file; string elements are StringRef handles.
struct TensorData {
  ElementType type = ElementType::kUndefined;
  std::span<const int64_t> dims;
  std::span<const std::byte> bytes;
  bool in_file = false;  // the bytes are pages of a mapped file, which can be dropped and read again
  const MappedFile* file = nullptr;  // that file, where parts can be read of it without mapping them
  TensorView view() const { return {const_cast<std::byte*>(bytes.data()), type, false, dims}; }
  // Copies bytes from `offset` on out of `file`.
  void read(int64_t offset, std::span<std::byte> to) const;
};

// Sparse data: values and their indices, as in the file.
struct SparseData {
  TensorData values, indices;
  std::span<const int64_t> dims;
};

// A value: an input, an initializer, or an output of a node.
struct Edge {
  uint32_t id = 0;  // unique in the model, bodies included
  std::string_view name;
  Graph* graph = nullptr;
  Node* producer = nullptr;              // null for inputs and initializers
  const TensorData* data = nullptr;      // of an initializer
  const TensorView* constant = nullptr;  // data as a view; set with set_data
  Facts facts;                           // with symbolic dimensions
  // A parameter, a gradient or a moment: `data` is its first value (no bytes: zeros) and changes from run to
  // run, so it is never a `constant`: not folded, not packed, not shared with an equal one.
  bool persistent = false;
  // A table in a file of which runs take rows only: they read these (`data->read`), and no page is mapped.
  bool by_rows = false;
  Account account = Account::kWeights;  // of the bytes of a persistent edge

  void set_data(BumpArena& arena, const TensorData& tensor);
  void make_persistent();
};

enum class AttributeType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

struct Attribute {
  std::string_view name;
  std::string_view reference;  // inside a local function: the attribute of the caller it stands for
  AttributeType type = AttributeType::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::span<const float> floats;
  std::span<const int64_t> ints;
  std::span<const std::string_view> strings;
  const TensorData* tensor = nullptr;
  std::span<const TensorData> tensors;
  const SparseData* sparse = nullptr;
  std::span<const SparseData> sparses;
  Graph* graph = nullptr;
  std::span<Graph* const> graphs;
  const TypeInfo* type_info = nullptr;
  std::span<const TypeInfo> type_infos;
};

struct Node {
  uint32_t id = 0;
  std::string_view name;    // never empty: made from the operator and its place if the file has none
  std::string_view domain;  // "" for ai.onnx
  std::string_view op_type;
  int opset = 0;  // version of its domain that the model imports
  Graph* graph = nullptr;
  const OpDef* op = nullptr;    // null until resolve()
  const void* attrs = nullptr;  // what op->attrs made
  std::span<Edge*> inputs;      // null pointers are absent optional inputs
  std::span<Edge*> outputs;     // likewise
  std::span<const Attribute> attributes;
  std::string_view overload;  // tells local functions of one name apart
  // Not 0 for a clone that computes the same again on purpose: nodes of different numbers are never merged.
  uint32_t instance = 0;

  Edge* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  const Attribute* attribute(std::string_view attribute_name) const;
  std::string label() const;  // "node 'attn/3' (MatMul)"
};

struct OpsetImport {
  std::string_view domain;
  int64_t version = 0;
};

struct NameValue {
  std::string_view name, value;
};

// A local function of the model: a graph whose inputs and outputs are matched by position.
struct Function {
  std::string_view domain, name;
  std::span<const OpsetImport> opsets;
  std::span<const std::string_view> attributes;  // names without a default
  std::span<const Attribute> attribute_defaults;
  Graph* body = nullptr;
  std::string_view overload;
};

// An input of the model that is also an initializer: `data` stands for it where a run does not give it.
struct Overridable {
  Edge* edge = nullptr;
  TypeInfo declared;
  const TensorData* data = nullptr;
};

class Graph {
 public:
  // The root of a model; its arena and pool must outlive it.
  Graph(BumpArena& arena, DimPool& dims);
  // A body: its nodes may use edges of `outer` and of what encloses it.
  explicit Graph(Graph& outer);
  Graph(const Graph&) = delete;

  Edge* add_edge(std::string_view edge_name);
  // A constant made by a rewrite; `tensor.bytes` must live as long as the arena.
  Edge* add_constant(std::string_view edge_name, const TensorData& tensor);
  // Appends a node. Outputs must be edges of this graph; their producer is set.
  Node* add_node(std::string_view domain, std::string_view op_type, std::string_view node_name,
                 std::span<Edge* const> node_inputs, std::span<Edge* const> node_outputs,
                 std::span<const Attribute> attributes = {});
  // Every use of `from` as an input, in this graph and the bodies below it, and as a graph output
  // becomes `to`.
  void replace_uses(Edge* from, Edge* to);
  // Puts the nodes into an order in which every value is made before it is used, keeping the file's
  // order where it can. Throws kInvalidModel naming a node of a cycle.
  void sort();
  // Calls f(graph) for this graph and every body below it.
  template <typename F>
  void for_each_graph(F&& f);

  Graph* outer() const { return outer_; }
  void set_outer(Graph& graph) { outer_ = &graph; }  // of a body whose node moves
  Graph& root() { return *root_; }
  BumpArena& arena() const { return *arena_; }
  DimPool& dims() const { return *dims_; }
  uint32_t edge_count() const { return root_->next_edge_; }  // ids are below this
  uint32_t node_count() const { return root_->next_node_; }  // likewise
  int opset(std::string_view domain) const;                  // version imported, 0 if none
  // For what ONNX forbids and other runtimes let pass: remembered once by the root, which keeps the first
  // kMaxWarnings. An Error (kInvalidModel) if the root is strict.
  void warn(std::string_view message);
  static constexpr size_t kMaxWarnings = 100;

  std::string_view name;
  ArenaVector<Node*> nodes;
  ArenaVector<Edge*> inputs;
  ArenaVector<Edge*> outputs;  // entries are never null
  // Of the root: persistent edges whose next values are the last outputs, in this order. Nobody outside sees
  // those: a run that makes them changes the state.
  ArenaVector<Edge*> updated;
  size_t visible_outputs() const { return outputs.size() - updated.size(); }
  // A persistent edge of zeros at first.
  Edge* add_state(std::string_view edge_name, ElementType type, std::span<const int64_t> dims,
                  Account account);
  // Every run that is asked for it leaves the value of `next` in `state`.
  void add_update(Edge* state, Edge* next);
  ArenaVector<Edge*> initializers;

  // Of the root only:
  bool strict = false;
  std::span<const OpDef* const> custom_ops;  // besides those that everybody has
  ArenaVector<std::string_view> warnings;
  ArenaVector<Overridable> overridable;  // in the order of the initializers
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version, domain, doc_string;
  int64_t model_version = 0;
  std::span<const OpsetImport> opsets;
  std::span<const NameValue> metadata;
  std::span<const Function> functions;

 private:
  BumpArena* arena_;
  DimPool* dims_;
  Graph* outer_ = nullptr;
  Graph* root_;
  uint32_t next_edge_ = 0;
  uint32_t next_node_ = 0;
};

// How often each edge (by id) is used as an input or output, bodies included.
std::vector<int> count_uses(Graph& root);

template <typename F>
void Graph::for_each_graph(F&& f) {
  f(*this);
  for (Node* node : nodes) {
    for (const Attribute& attribute : node->attributes) {
      if (attribute.graph != nullptr) attribute.graph->for_each_graph(f);
      for (Graph* body : attribute.graphs) body->for_each_graph(f);
    }
  }
}

}  // namespace plimsoll
