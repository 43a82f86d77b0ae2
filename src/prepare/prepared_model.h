// PreparedModel: a model after reading, lowering, inference and optimization; what all shapes share.
#pragma once

#include <memory>
#include <string>

#include "graph/infer.h"
#include "onnx/reader.h"
#include "plan/placement.h"
#include "prepare/weights.h"

namespace plimsoll {

struct PrepareOptions {
  int threads = 1;
  int concurrent_runs = 1;
  int level = 3;  // of optimization: 0 to 3
  int stop_after_pass = -1;
  bool only_onnx = false;     // see OptimizeOptions
  bool keep_opset = false;    // see OptimizeOptions
  bool naive = false;         // no memory is used twice
  bool check_passes = false;  // see OptimizeOptions
  bool check_plans = false;   // run the independent checker on every plan
  bool read_into_memory = false;
};

// Read, then prepare(), then load_weights(), each once; read-only afterwards. Movable only by pointer. The
// budget must outlive it.
class PreparedModel {
 public:
  // Reads: the graph is as in the file.
  PreparedModel(const std::string& path, const PrepareOptions& options, Budget& budget);
  // From bytes that outlive it.
  PreparedModel(std::span<const std::byte> bytes, const PrepareOptions& options, Budget& budget);
  PreparedModel(const PreparedModel&) = delete;

  // Lowers, infers and optimizes the graph, and decides what becomes of the weights.
  void prepare();
  bool is_prepared() const { return weights_ != nullptr; }
  void load_weights();

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const Weights& weights() const { return *weights_; }
  const PrepareOptions& options() const { return options_; }
  int64_t memory_bytes() const { return arena_.mapped_bytes(); }
  // The graph and the tables that made it, at their most.
  int64_t prepare_peak_bytes() const { return prepare_peak_; }
  // Files that were read into memory, not mapped.
  int64_t source_bytes() const { return source_charge_.bytes(); }

 private:
  PrepareOptions options_;
  Budget budget_;
  Charge source_charge_;
  int64_t prepare_peak_ = 0;
  BumpArena arena_;
  DimPool dims_;
  Graph graph_;
  ModelSource source_;
  std::unique_ptr<Weights> weights_;
};

// An input that is also an initializer is a constant for us: removes it from the graph's inputs.
void drop_defaulted_inputs(Graph& graph);

// What a session holds at its most, as an expression in the symbolic dimensions: live bytes, not placed ones.
// Pure.
struct Formula {
  std::string text;
  std::vector<std::string> symbols;
  bool depends_on_data = false;
};
Formula make_formula(const PreparedModel& model);

}  // namespace plimsoll
