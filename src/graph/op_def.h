// OpDef: the contract between an operator (one file in src/ops) and the engine.
//
// An operator is a table of plain functions. None of them keeps state; all may be called from many
// threads. The order in which the engine calls them:
//   attrs   once per node, at load: reads and checks the attributes.
//   decompose  of an operator that is others put together: after the first inference they take its place.
//   infer   types and shapes, on symbolic dimensions at load, on constants for each prepared shape,
//           and during a run, with the data at hand, for shapes that depend on data.
//   layout  what changes when axes move (graph/layout.h); region which part of the inputs a part of
//           the output needs (graph/region.h). Both answer questions of rewrites.
//   alias   what the outputs may share with the inputs.
//   select  the Choice: which kernel, which weights in which format, which pieces of scratch. Pure, so that
//           planning needs no memory. Called at load on symbolic dimensions (weights and attributes decide
//           the formats), then for each concrete shape, and during a run where shapes depend on data.
//   pack    writes one weight in the format that the Choice names, straight into its final place; once for
//           all nodes that name the same format of the same tensor.
//   bind    what can be computed ahead for a concrete shape, beyond the Choice.
//   run     the work: never allocates, never checks again what infer proved.
//   run_values  the work where what goes in or comes out is no tensor (graph/value_run.h), lower what of it
//   needs
//           no work at all (graph/lower.h).
//   gradient  writes the nodes that make the gradients of the inputs from those of the outputs
//           (graph/gradient.h), when a graph is differentiated.
//   cost    arithmetic operations and bytes, for profiles.
// pack, bind and run are handed the Choice and decide nothing again. An operator also works on weights
// that are not packed, because training changes them: then it packs into scratch, or needs no packing.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "graph/graph.h"
#include "graph/value_run.h"

namespace plimsoll {

class DecomposeContext;
class GradientContext;
class LayoutContext;
class LowerContext;
class RegionContext;

// What the contexts below say of their node; not templates, because every operator's file includes this.
[[noreturn]] void reject_node(const Node& node, const std::string& what);
void warn_of_node(const Node& node, const std::string& what);

// ---- attrs ------------------------------------------------------------------------------------

// Reads attributes by name. Getters throw kInvalidModel if the attribute has another type, or is
// absent where no default is given. Attributes that nobody asked for are for the engine to judge.
class AttrContext {
 public:
  AttrContext(const Node& node, BumpArena& arena) : node_(node), arena_(arena) {}
  bool has(std::string_view name);
  int64_t integer(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  float real(std::string_view name);
  float real(std::string_view name, float fallback);
  std::string_view text(std::string_view name);
  std::string_view text(std::string_view name, std::string_view fallback);
  std::span<const int64_t> integers(std::string_view name);  // empty if absent
  std::span<const float> reals(std::string_view name);       // empty if absent
  std::span<const std::string_view> texts(std::string_view name);
  const TensorData* tensor(std::string_view name);                   // null if absent
  Graph* body(std::string_view name);                                // throws if absent
  const Attribute* find(std::string_view name, AttributeType type);  // null if absent
  void ignore(std::string_view name) { has(name); }

  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  BumpArena& arena() const { return arena_; }
  template <typename T>
  T* make() {
    return arena_.make<T>();
  }
  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    reject_node(node_, fmt::format(format, std::forward<Args>(args)...));
  }
  // What the operator can do with, though ONNX forbids it (Graph::warn).
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    warn_of_node(node_, fmt::format(format, std::forward<Args>(args)...));
  }
  bool was_asked(std::string_view name) const;

 private:
  const Node& node_;
  BumpArena& arena_;
  std::vector<std::string_view> asked_;
};

// ---- infer ------------------------------------------------------------------------------------

// A set of element types.
struct TypeSet {
  uint32_t bits = 0;
  constexpr bool contains(ElementType type) const { return (bits >> static_cast<int>(type)) & 1; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b) { return {a.bits | b.bits}; }
};
template <typename... Types>
constexpr TypeSet types(Types... list) {
  return {((1u << static_cast<int>(list)) | ...)};
}
inline constexpr TypeSet kFloatTypes =
    types(ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBFloat16);
inline constexpr TypeSet kSignedTypes =
    types(ElementType::kInt8, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64);
inline constexpr TypeSet kUnsignedTypes =
    types(ElementType::kUint8, ElementType::kUint16, ElementType::kUint32, ElementType::kUint64);
inline constexpr TypeSet kIntegerTypes = kSignedTypes | kUnsignedTypes;
inline constexpr TypeSet kNumericTypes = kFloatTypes | kIntegerTypes;
inline constexpr TypeSet kIndexTypes = types(ElementType::kInt32, ElementType::kInt64);
inline constexpr TypeSet kBoolType = types(ElementType::kBool);
// What data movement can carry: everything with a whole number of bytes.
inline constexpr TypeSet kAllTypes =
    kNumericTypes | kBoolType |
    types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128, ElementType::kFloat8E4M3FN,
          ElementType::kFloat8E4M3FNUZ, ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ,
          ElementType::kFloat8E8M0);

// Infers a nested body: facts of its inputs in, facts of its outputs out.
class BodyInferrer {
 public:
  virtual ~BodyInferrer() = default;
  virtual std::vector<Facts> infer(const Graph& body, std::span<const Facts> inputs) = 0;
};

// What infer, alias, select, pack, bind and cost know of a node: facts of what goes in and comes out.
class NodeContext {
 public:
  NodeContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs)
      : node_(node), inputs_(inputs), outputs_(outputs) {}
  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  template <typename T>
  const T& attrs() const {
    return *static_cast<const T*>(node_.attrs);
  }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != nullptr; }
  bool has_output(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != nullptr; }
  const Facts& input(size_t i) const { return inputs_[i]; }
  const Facts& output(size_t i) const { return outputs_[i]; }
  ElementType type(size_t i) const { return inputs_[i].type.type; }
  std::span<const Dim> dims(size_t i) const { return inputs_[i].type.dims; }
  size_t rank(size_t i) const { return inputs_[i].type.rank(); }
  bool ranked(size_t i) const { return inputs_[i].type.ranked; }
  // Null if the data is not known.
  const TensorView* constant(size_t i) const { return has_input(i) ? inputs_[i].constant : nullptr; }
  // The elements of an integer tensor, where every one is a known number.
  std::optional<std::vector<int64_t>> integers(size_t i) const;
  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    reject_node(node_, fmt::format(format, std::forward<Args>(args)...));
  }

 protected:
  const Node& node_;
  std::span<const Facts> inputs_;
  std::span<Facts> outputs_;
};

class InferContext : public NodeContext {
 public:
  InferContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs, BumpArena& arena,
               DimPool& pool, BodyInferrer* body_inferrer)
      : NodeContext(node, inputs, outputs), bodies(body_inferrer), arena_(arena), pool_(pool) {}

  // The elements of an integer tensor, from constant data or shape arithmetic; nullopt if unknown.
  std::optional<std::span<const Dim>> values(size_t i);
  // The elements of a constant float tensor.
  std::optional<std::vector<float>> reals(size_t i);

  void expect_type(size_t i, TypeSet set) const;  // throws naming the input and its type
  void expect_same_type(size_t i, size_t j) const;
  void expect_rank(size_t i, size_t least, size_t most) const;  // an unknown rank passes
  // -rank..rank-1 -> 0..rank-1; throws otherwise.
  int64_t axis(int64_t axis, size_t rank) const;

  // Throws if the shape has a negative dimension, more than kMaxRank of them, or overflows.
  void set_output(size_t i, ElementType type, std::span<const Dim> dims);
  void set_output(size_t i, ElementType type, const std::vector<Dim>& dims) {
    set_output(i, type, std::span<const Dim>(dims));
  }
  void set_unranked_output(size_t i, ElementType type);
  void set_output_facts(size_t i, const Facts& facts);
  // A sequence, optional or map, with its number of elements where that is known.
  void set_output_type(size_t i, const TypeInfo& type, std::optional<Dim> length = std::nullopt);
  // Known elements of an integer output (at most kMaxKnownValues of them; more are forgotten).
  void set_values(size_t i, std::span<const Dim> values);
  void set_values(size_t i, const std::vector<Dim>& values) { set_values(i, std::span<const Dim>(values)); }

  // A dimension that only the data can tell.
  Dim unknown(std::string_view hint) { return pool_.fresh(hint.empty() ? node_.name : hint); }
  // The dimension of a broadcast result; throws if a and b cannot meet.
  Dim broadcast(Dim a, Dim b) const;
  std::vector<Dim> broadcast(std::span<const Dim> a, std::span<const Dim> b) const;

  BumpArena& arena() { return arena_; }
  DimPool& pool() { return pool_; }

  static constexpr size_t kMaxKnownValues = 1024;
  static constexpr size_t kMaxRank = 64;
  BodyInferrer* const bodies;

 private:
  BumpArena& arena_;
  DimPool& pool_;
};

// ---- alias ------------------------------------------------------------------------------------

enum class AliasKind : uint8_t {
  kOverwrite,  // run works when the output has the input's address (same number of bytes)
  kView,       // the output is a contiguous piece of the input at `offset`; run is not called for it
  kPiece,      // the input is a contiguous piece of the output at `offset`: if the producer writes it
               // there, run has nothing to copy (run must skip the copy if the addresses are equal)
};
struct Alias {
  AliasKind kind;
  uint32_t input, output;
  Dim offset_bytes;
};

// Facts of the outputs are filled in. Only whole-node views count: a node all of whose outputs are
// views is never run.
class AliasContext : public NodeContext {
 public:
  using NodeContext::NodeContext;
  void overwrite(size_t input, size_t output = 0) { add(AliasKind::kOverwrite, input, output, 0); }
  void view(size_t input, size_t output = 0, Dim offset_bytes = 0) {
    add(AliasKind::kView, input, output, offset_bytes);
  }
  void piece(size_t input, size_t output, Dim offset_bytes) {
    add(AliasKind::kPiece, input, output, offset_bytes);
  }
  std::vector<Alias> aliases;

 private:
  void add(AliasKind kind, size_t input, size_t output, Dim offset) {
    aliases.push_back({kind, static_cast<uint32_t>(input), static_cast<uint32_t>(output), offset});
  }
};

// ---- select, pack, bind -------------------------------------------------------------------------

// A format of weights: together with the raw tensor it determines every packed byte, so that nodes that name
// the same format of the same tensor share one copy. It may depend on weights, attributes and machine, never
// on the shape of the activations.
struct PackFormat {
  std::string_view kind;             // a literal: "gemm_b", "conv", ...
  std::array<int64_t, 8> numbers{};  // the kind's own: groups, transposition, columns of a panel, ...
  const Edge* also_reads = nullptr;  // another weight that goes into the bytes, such as a scale
  friend bool operator==(const PackFormat&, const PackFormat&) = default;
};

// Whoever calls select decides what is packed.
class PackPolicy {
 public:
  virtual ~PackPolicy() = default;
  // Whether run will be given input `input` of `node` in this format, which takes so many bytes.
  virtual bool pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const = 0;
};

// What select asks for and decides. Without a policy every weight stays raw.
class SelectContext : public NodeContext {
 public:
  SelectContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                const PackPolicy* policy, int thread_count, BumpArena& arena)
      : NodeContext(node, inputs, outputs), threads(thread_count), policy_(policy), arena_(arena) {}

  // Asks for an input, whose shape must be concrete, in a format of the operator's own. False: run will be
  // given the raw tensor, because a node makes it, or training changes it, or the caller keeps raw weights.
  // Asked for every shape alike: whether the data is at hand makes no difference.
  bool pack(size_t input, const PackFormat& format, int64_t bytes) const {
    return policy_ != nullptr && has_input(input) && policy_->pack(node_, input, format, bytes);
  }
  // Adds a piece of scratch, which all threads of the run share, and returns its offset, a multiple of 64;
  // 0 if a size so far is symbolic: that Choice will not run.
  int64_t scratch(Dim bytes) {
    const Dim offset = ceil_div(scratch_bytes_, Dim(kScratchAlignment)) * Dim(kScratchAlignment);
    scratch_bytes_ = offset + bytes;
    return offset.is_constant() ? offset.value() : 0;
  }
  Dim scratch_bytes() const { return scratch_bytes_; }

  // Memory for the Choice, as long-lived as the Choice itself.
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    return arena_.make<T>(std::forward<Args>(args)...);
  }
  template <typename T>
  std::span<T> array(size_t count) {
    return arena_.array<T>(count);
  }
  // Everything that goes in and comes out has a concrete shape: the Choice will run.
  bool is_concrete() const;

  static constexpr int64_t kScratchAlignment = 64;
  const int threads;

 private:
  const PackPolicy* policy_;
  BumpArena& arena_;
  Dim scratch_bytes_ = 0;
};

// Facts are those of load: weights are concrete and their data is at hand, the rest may be symbolic.
class PackContext : public NodeContext {
 public:
  PackContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs, const void* choice,
              size_t input_index, const TensorView& raw_tensor, std::byte* packed_bytes)
      : NodeContext(node, inputs, outputs),
        input_to_pack(input_index),
        raw(raw_tensor),
        destination(packed_bytes),
        choice_(choice) {}
  template <typename T>
  const T& choice() const {
    return *static_cast<const T*>(choice_);
  }
  const size_t input_to_pack;
  const TensorView& raw;         // at any alignment
  std::byte* const destination;  // aligned to 64; as many bytes as select named

 private:
  const void* choice_;
};

// Facts are concrete. What make() returns lives as long as the prepared shape, in its arena.
class BindContext : public NodeContext {
 public:
  BindContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs, const void* choice,
              int thread_count, BumpArena& arena)
      : NodeContext(node, inputs, outputs), threads(thread_count), choice_(choice), arena_(arena) {}
  template <typename T>
  const T& choice() const {
    return *static_cast<const T*>(choice_);
  }
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    return arena_.make<T>(std::forward<Args>(args)...);
  }
  template <typename T>
  std::span<T> array(size_t count) {
    return arena_.array<T>(count);
  }
  const int threads;

 private:
  const void* choice_;
  BumpArena& arena_;
};

// ---- run ----------------------------------------------------------------------------------------

struct RunContext {
  const Node* node = nullptr;
  std::span<const TensorView> inputs;   // absent ones convert to false
  std::span<const TensorView> outputs;  // likewise
  std::byte* scratch = nullptr;         // exactly what select declared; its contents are left from others
  const void* choice_made = nullptr;    // by select, on these very shapes
  const void* bound = nullptr;
  int threads = 1;  // as select was told
  TextMemory* text = nullptr;
  uint64_t random_seed = 0;  // of this run, for operators that draw (ops/random_source.h)
  uint64_t random_turn = 0;  // how often this body has run before in this run: every turn draws anew

  template <typename T>
  const T& attrs() const {
    return *static_cast<const T*>(node->attrs);
  }
  template <typename T>
  const T& choice() const {
    return *static_cast<const T*>(choice_made);
  }
  template <typename T>
  const T& bound_as() const {
    return *static_cast<const T*>(bound);
  }
  template <typename T>
  T* scratch_as(int64_t offset) const {
    return reinterpret_cast<T*>(scratch + offset);
  }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i]; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i]; }
};

// ---- bodies -------------------------------------------------------------------------------------

// Asked while a shape is planned: what an operator with bodies keeps besides their own memory.
class WorkspaceContext : public NodeContext {
 public:
  using BodyFacts = std::function<const Facts&(const Edge*)>;
  WorkspaceContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                   const BodyFacts& body_facts)
      : NodeContext(node, inputs, outputs), body_facts_(body_facts) {}
  // What is known of a value inside a body.
  const Facts& inside(const Edge* edge) const { return body_facts_(edge); }
  // A piece of its own, 64-byte aligned, alive while the node runs. Pieces are numbered as they come.
  void add(Dim bytes) { pieces.push_back(bytes); }
  std::vector<Dim> pieces;

 private:
  const BodyFacts& body_facts_;
};

// One run of a node with bodies, as its operator sees it. Nothing here takes heap memory where shapes are
// known.
class BodyRun : public ValueRun {
 public:
  // False: the body does not fit the shapes of this run.
  virtual bool has_body(size_t body) const = 0;
  // What was inferred of a body's input or output for these shapes. False where some dims, then -1, or their
  // number, then none, only the data tells, and of what is no tensor.
  virtual bool knows_input(size_t body, size_t i, TensorView& view) const = 0;
  virtual bool knows_output(size_t body, size_t i, TensorView& view) const = 0;
  // Runs a body. Its outputs are valid until it runs again, or this run is over.
  virtual void run(size_t body, std::span<const TensorView> inputs) = 0;
  virtual TensorView body_output(size_t body, size_t i) const = 0;
  // Room for as many views as the body has inputs, twice.
  virtual std::span<TensorView> given(size_t body) = 0;
  virtual std::span<TensorView> made(size_t body) = 0;
  // Piece `piece` of the workspace.
  virtual std::byte* workspace(size_t piece) const = 0;
  virtual TensorView planned_output(size_t i) const = 0;
};

// How an operator with bodies is planned and run. Bodies are numbered in the order of their attributes.
struct ControlFlow {
  void (*workspace)(WorkspaceContext&) = nullptr;
  void (*run)(BodyRun&) = nullptr;
};

// ---- the table ------------------------------------------------------------------------------------

// What a node does, for facts that are concrete.
struct Cost {
  int64_t operations = 0;  // arithmetic
  int64_t bytes = 0;       // read and written
};
// Bytes of all inputs and outputs.
int64_t tensor_bytes(const NodeContext& c);
// What the operator tells; one operation per output element, and tensor_bytes, if it tells nothing.
Cost cost_of(const NodeContext& c);

struct Arity {
  size_t least = 1;
  size_t most = 1;
};
inline constexpr size_t kAnyNumber = 1u << 20;

// Ours: fused forms that passes make. A file may name them too, so they check what they are given.
inline constexpr std::string_view kPlimsollDomain = "ai.plimsoll";
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

struct OpDef {
  std::string_view domain = "";  // "" is ai.onnx
  std::string_view name;
  Arity inputs = {};
  Arity outputs = {};
  bool deterministic = true;  // may be folded when every input is constant
  const void* (*attrs)(AttrContext&) = nullptr;
  void (*infer)(InferContext&) = nullptr;
  void (*alias)(AliasContext&) = nullptr;
  const void* (*select)(SelectContext&) = nullptr;
  void (*pack)(const PackContext&) = nullptr;
  const void* (*bind)(BindContext&) = nullptr;
  void (*run)(const RunContext&) = nullptr;
  void (*run_values)(ValueRun&) =
      nullptr;  // takes the place of run where shapes or kinds only the data tells
  void (*lower)(LowerContext&) = nullptr;
  Cost (*cost)(const NodeContext&) = nullptr;
  void (*layout)(LayoutContext&) = nullptr;   // none: its axes stay where ONNX has them
  void (*region)(RegionContext&) = nullptr;   // none: whole inputs are needed
  const ControlFlow* control_flow = nullptr;  // it has bodies: this takes the place of run
  bool channels_last = false;                 // exists in our domain too, with an attribute of that name
  uint32_t optional_inputs = 0;               // bit i: input i, below inputs.least, may be absent
  uint32_t unaligned_inputs = 0;  // bit i: run reads input i bytewise, so a weight at any address will do
  // bit i: of input i, where it is a table in a file (Edge::by_rows), run takes rows only, and reads them
  uint32_t (*row_inputs)(const Node&) = nullptr;
  void (*decompose)(DecomposeContext&) = nullptr;  // writes others in its place (graph/decompose.h): no run
  void (*gradient)(GradientContext&) = nullptr;    // none: it cannot be differentiated (graph/gradient.h)
  // Another name of that operator in that version: it takes the place of all but domain and name.
  const OpDef* same_as = nullptr;
  int same_version = 0;
};

}  // namespace plimsoll
