// Model: a file that has been read and checked, to look at and to plan, without running it.
//
// Owns the mapping of the file. Movable. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/allocator.h"
#include "plimsoll/env.h"
#include "plimsoll/error.h"
#include "plimsoll/plan.h"
#include "plimsoll/session_options.h"
#include "plimsoll/value.h"

namespace plimsoll {

// A graph input or output. Each dimension is a number or an expression in symbols.
struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ElementType type = ElementType::kUndefined;  // of other kinds: that of the tensors in them
  std::string type_text;                       // "float[batch, 3, 224, 224]", "sequence(float[...])"
  bool ranked = false;
  std::vector<int64_t> dims;         // -1 where it is not a number
  std::vector<std::string> symbols;  // "" where it is a number
  bool has_default = false;          // an initializer stands in for it
};

// What a file says of itself. The functions are ONNX Runtime's names for the fields.
struct ModelMetadata {
  std::string producer_name, graph_name, domain, description, graph_description;
  int64_t version = 0;
  std::map<std::string, std::string> custom_metadata_map;

  AllocatedStringPtr GetProducerNameAllocated(const Allocator& a) const {
    return allocate_text(producer_name, a);
  }
  AllocatedStringPtr GetGraphNameAllocated(const Allocator& a) const { return allocate_text(graph_name, a); }
  AllocatedStringPtr GetDomainAllocated(const Allocator& a) const { return allocate_text(domain, a); }
  AllocatedStringPtr GetDescriptionAllocated(const Allocator& a) const {
    return allocate_text(description, a);
  }
  AllocatedStringPtr GetGraphDescriptionAllocated(const Allocator& a) const {
    return allocate_text(graph_description, a);
  }
  std::vector<AllocatedStringPtr> GetCustomMetadataMapKeysAllocated(const Allocator& a) const;
  // Null if there is no such key.
  AllocatedStringPtr LookupCustomMetadataMapAllocated(const char* key, const Allocator& a) const;
  int64_t GetVersion() const { return version; }
};

// kInvalidModel of bytes that cannot even be taken apart as a protobuf.
class MalformedModel : public Error {
 public:
  explicit MalformedModel(std::string message) : Error(ErrorCode::kInvalidModel, std::move(message)) {}
};

struct ModelInfo {
  std::string producer, graph_name;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<ValueInfo> inputs, outputs;
  std::map<std::string, int64_t> operators;  // how often each occurs, in bodies and functions too
  std::vector<std::string> not_implemented;  // those this version cannot run
  int64_t node_count = 0;
  int64_t weight_count = 0;
  int64_t weight_bytes = 0;
  std::map<std::string, std::string> metadata;
};

struct SaveOptions {
  // Fused operators of our own (domain ai.plimsoll) and channels-last tensors too: only Plimsoll opens the
  // file.
  bool fused = false;
};

struct CompileOptions {
  std::vector<Shapes> shapes;  // placed with more patience than a session has; what the model fixes is too
};

struct CompiledInfo {
  int64_t file_bytes = 0, weights_bytes = 0, packed_bytes = 0, nodes = 0;
  std::vector<int64_t> peak_bytes;  // that a session is told, one per shapes
  int threads = 0;
  std::string instruction_set;
};

class Model {
 public:
  // Reads and checks the file, which may be a compiled one. Throws kIo, kInvalidModel.
  Model(const Env& env, const std::string& path, const SessionOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelInfo& GetInfo() const;
  const ModelMetadata& GetMetadata() const;
  // What ONNX forbids and was let pass, so far: reading finds some of it, MakePlan the rest.
  std::vector<std::string> GetWarnings() const;
  // The plan for these shapes, as a Session with the same options would make it; nothing is packed
  // and no tensor memory is allocated. With `limit_bytes` of the options set, a model that cannot fit
  // throws kBudgetExceeded naming the node that needs the most and the smallest limit that would do.
  //
  // A session plans shapes that it is told when it is opened (those that the model fixes, or its argument
  // `shapes`) before it loads the weights, others beside them, which for small models takes more at the worst
  // moment.
  Plan MakePlan(const Shapes& shapes = {}, bool told_at_opening = false) const;
  // Writes the model after optimization, in ONNX's own operators and the opset it came with. Local functions
  // are inlined.
  void Save(const std::string& path, const SaveOptions& options = {}) const;
  // Writes a compiled file for this machine's instructions and the threads of the options: the optimized
  // graph, placements and packed weights, which every Session that opens it uses where they lie. Throws
  // kBudgetExceeded if the shapes do not keep to the options' limit, kIo.
  CompiledInfo Compile(const std::string& path, const CompileOptions& options = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
