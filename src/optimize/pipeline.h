// The ordered list of rewrites, and running it.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>

#include "graph/graph.h"

namespace plimsoll {

// 0 nothing; 1 what is the same node by node (folding, dead code); 2 fused operators; 3 layouts too.
struct OptimizeOptions {
  int level = 3;
  int stop_after = -1;  // run only the first N passes of the list, for bisection; -1 runs all
  // A folded result larger than this is kept only if it is smaller than the constants it replaces.
  int64_t fold_bytes_cap = 4 << 20;
  // Of ONNX's operators only those that the model's opset has are made: what is written is valid ONNX.
  // Raising the import instead would change what the other nodes mean.
  bool keep_opset = false;
  // No operators of our own (domain ai.plimsoll): whoever knows ONNX can open what is written.
  bool only_onnx = false;
  bool winograd = true;         // convolutions by Winograd's way, products by Strassen's
  bool round_products = false;  // floats that meet constants are multiplied in bfloat16
  bool spend_memory = true;     // for speed: weights that are transformed ahead, sums in scratch
  bool trains = false;          // constants may become parameters: none is replaced by a copy
  // After every pass, prove the model anew (see check_graph.h) and throw naming the pass: for tests.
  bool check_passes = false;
  // For the tables of one pass after the other; optimize() sets it. Null: a pass takes memory of its own.
  std::pmr::memory_resource* tables = nullptr;
};

// Whether passes may make an operator that came with opset `since`.
inline bool may_make(const Graph& root, const OptimizeOptions& options, int since) {
  return !options.keep_opset || root.opset("") >= since;
}

// A rewrite of a whole model, bodies included. Nodes are resolved, in order, and Edge::facts are up
// to date before and after. Returns whether anything changed.
struct Pass {
  const char* name;
  int level;
  bool (*apply)(Graph& root, const OptimizeOptions& options);
  bool makes_ours = false;  // operators of our own domain: left out where ONNX must be kept to
};

std::span<const Pass> passes();

// Before a model is differentiated: shape arithmetic is computed, so that gradients know what was broadcast
// (from level 1 on); what is one function of ONNX, written out in several nodes, becomes one node (Gelu,
// HardSwish, Silu, LayerNormalization), whose gradient is one node too and keeps less (from level 2 on).
void prepare_differentiation(Graph& root, int level);

// Runs the passes of the level in order. The model must be resolved and inferred (infer_graph).
void optimize(Graph& root, const OptimizeOptions& options);

}  // namespace plimsoll
