// PreparedModel: a model after reading, lowering, inference and optimization; what all shapes share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "graph/infer.h"
#include "memory/arena_image.h"
#include "onnx/reader.h"
#include "plan/placement.h"
#include "prepare/compiled_parts.h"
#include "prepare/custom_ops.h"
#include "prepare/weights.h"
#include "train/memory_config.h"

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
  bool strict = false;          // see LoadOptions
  bool pack = true;             // weights in the format that kernels want
  bool winograd = true;         // see OptimizeOptions
  bool round_products = false;  // see OptimizeOptions
  bool spend_memory = true;     // see OptimizeOptions
  bool thorough = false;        // look for the smallest plan even where the quick one fits
  // What stands for parts of the file; the rest of it is set from what is above.
  LoadOptions load;
  std::string external_folder;  // of external data; empty: beside the model
  // Inputs that are also initializers: these are inputs, with the initializer for runs that do not give them;
  // the others are constants.
  std::vector<std::string> overridden;
  std::shared_ptr<const CustomOps> custom_ops;  // null: none
  // Lowered, optimized and packed already: its graph is what is read. Null: a model as ONNX has it.
  std::shared_ptr<const CompiledParts> compiled;
  bool refuse_mismatch = false;  // a compiled file for another build or instruction set is an Error
  // The graph is the one of a compiled file in the making: nothing is rewritten.
  bool is_final = false;
  std::shared_ptr<plan::SolvedPlacements> solved;  // where placements go that are worth keeping, or null
  // Training: what is done to the lowered and inferred graph before it is optimized.
  std::function<void(Graph&)> rewrite;
  // What is done to it when it is optimized: nodes are resolved, facts on the edges, before and after.
  std::function<void(Graph&)> finish;
  // Lets go of pages of other files, from which a rewrite brought weights; may be left out.
  std::function<void(std::span<const std::byte>)> drop_pages;
  // Of runs that change states: these clusters run again, whatever the limit is. Where it names none: as the
  // limit needs.
  MemoryConfig memory_config;

  // Whether the compiled file has what preparing makes of it, and these options would make the same.
  bool takes_images() const;
};

// Read, then prepare(), then load_weights(), each once; read-only afterwards. Movable only by pointer. The
// budget must outlive it.
class PreparedModel {
 public:
  // Reads: the graph is as in the file.
  PreparedModel(const std::string& path, const PrepareOptions& options, Budget& budget);
  // From bytes that outlive it.
  PreparedModel(std::span<const std::byte> bytes, const PrepareOptions& options, Budget& budget);
  // As options.compiled has it: prepared already, from its image where that is of use with these options,
  // else read from its graph.
  PreparedModel(const PrepareOptions& options, Budget& budget);
  PreparedModel(const PreparedModel&) = delete;

  // Lowers, infers and optimizes the graph, and decides what becomes of the weights. Of one that is prepared:
  // nothing.
  void prepare();
  bool is_prepared() const { return weights_ != nullptr; }
  void load_weights();
  // Before the first run: throws kInvalidModel if a compiled file's weights were altered.
  void verify_weights() const {
    if (options_.compiled != nullptr) options_.compiled->verify_weights(options_.threads);
  }

  // What is to be ready by then.
  void begin_verifying() const {
    if (options_.compiled != nullptr) options_.compiled->begin_verifying(options_.threads);
  }

  // Lets go of pages of its files that have been read (ModelSource).
  void drop_pages(std::span<const std::byte> range) const {
    source_.drop(range);
    if (options_.drop_pages) options_.drop_pages(range);
  }
  int64_t file_bytes() const { return source_.file_bytes(); }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const Weights& weights() const { return *weights_; }
  const PrepareOptions& options() const { return options_; }
  const std::string& graph_description() const { return graph_description_; }  // its doc_string
  // Some weights take more memory than they must, for speed: without `spend_memory` they would not.
  bool spends_memory() const { return spends_memory_; }
  // The graph as it is when the weights are loaded, and their tables.
  int64_t memory_bytes() const {
    const int64_t leaves = weights_->is_loaded() ? 0 : weights_->passing_bytes();
    return arena_.mapped_bytes() - leaves + weights_->tables_bytes();
  }
  // The graph and the tables that made it, at their most.
  int64_t prepare_peak_bytes() const { return prepare_peak_; }
  // Files that were read into memory, not mapped.
  int64_t source_bytes() const { return source_charge_.bytes(); }
  // What stands for an input that a run does not give: empty if nothing does. Valid after load_weights().
  TensorView default_of(size_t input) const;
  int64_t defaults_bytes() const { return defaults_bytes_; }  // of the account `weights`, whole pages

  // Prepared, not loaded: what a compiled file keeps of it. Nothing where what is in its memory leads
  // elsewhere.
  std::optional<std::vector<std::byte>> image(std::span<const Place> others);
  const BumpArena& arena() const { return arena_; }
  // Where its image was put, or null: it was read.
  const std::byte* image_begin() const { return image_begin_; }

 private:
  // What reaches everything in the arena.
  struct Root {
    DimPool* dims = nullptr;
    Graph* graph = nullptr;
    const Weights::Tables* weights = nullptr;
  };
  Root* make_root();
  Root* load_root();
  struct Default {
    size_t input;
    const TensorData* data;
    int64_t offset;
  };
  void read(const std::string* path, std::span<const std::byte> bytes);
  void prepare_compiled();
  void charge_source();
  void make_weights();
  void check_overridden() const;
  void settle_inputs();
  void load_defaults();

  PrepareOptions options_;
  std::string graph_description_;
  Budget budget_;
  Charge source_charge_;
  int64_t prepare_peak_ = 0;
  bool spends_memory_ = false;
  BumpArena arena_;
  const std::byte* image_begin_ = nullptr;
  Root* root_;
  Graph& graph_;
  ModelSource source_;
  std::unique_ptr<Weights> weights_;
  std::vector<Default> defaults_;
  int64_t defaults_bytes_ = 0;
  Arena defaults_arena_;
};

// Null if no initializer stands for the input.
const Overridable* find_overridable(const Graph& graph, const Edge& input);
// An input that is also an initializer is a constant from now on: removes it from the graph's inputs.
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
