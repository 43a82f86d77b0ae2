#include "optimize/pipeline.h"

#include <fmt/core.h>

#include <optional>

#include "graph/infer.h"
#include "memory/free_lists.h"
#include "memory/transient_memory.h"
#include "optimize/check_graph.h"
#include "optimize/recognize_attention.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Folding can make more shapes known, which makes more to fold.
bool fold_and_infer(Graph& root, const OptimizeOptions& options) {
  if (!fold_all_but_dequantized(root, options)) return false;
  infer_graph(root);
  return true;
}

bool inline_and_infer(Graph& root, const OptimizeOptions& options) {
  if (!inline_constant_branches(root, options)) return false;
  infer_graph(root);
  return true;
}

// What a branch makes known may decide the next one.
bool fold_and_inline(Graph& root, const OptimizeOptions& options) {
  bool changed = fold_and_infer(root, options);
  while (inline_and_infer(root, options)) {
    changed = true;
    fold_and_infer(root, options);
  }
  return changed;
}

constexpr Pass kPasses[] = {
    {"dead_code", 1, remove_dead_code},
    {"identity", 1, remove_identities},
    {"fold_constants", 1, fold_and_infer},
    {"constant_branches", 1, inline_and_infer},
    {"identity", 1, remove_identities},
    {"fold_constants", 1, fold_and_inline},
    {"identity", 1, remove_identities},
    {"constant_shapes", 1, use_constant_shapes},
    {"common_subexpressions", 1, share_subexpressions},
    {"identity", 1, remove_identities},
    {"byte_tables", 2, make_byte_tables, true},
    {"quantized_products", 2, fuse_quantized_products, true},
    {"quantized_operators", 2, fuse_quantized_operators, true},
    {"dequantized_weights", 2, multiply_dequantized_weights, true},
    {"fold_constants", 1, fold_constants},
    {"identity", 1, remove_identities},
    {"activations", 2, recognize_activations},
    {"gelu", 2, recognize_gelu},
    {"layer_normalization", 2, recognize_layer_normalization},
    {"padding", 2, fuse_padding},
    {"conv_affine", 2, fuse_conv_affine, true},
    {"conv_residual", 2, fuse_conv_residual, true},
    {"matmul", 2, fuse_matmul, true},
    {"integer_matmul", 2, fuse_integer_matmul, true},
    {"scale_shift", 2, fuse_scale_shift, true},
    {"fuse_activations", 2, fuse_activations, true},
    {"channels_last", 3, use_channels_last, true},
    {"transposes", 2, simplify_transposes},
    {"quantized_residual", 3, fuse_quantized_residual, true},
    {"matmul_transposes", 2, fuse_matmul_transposes, true},
    {"matmul", 2, fuse_matmul, true},
    {"attention", 2, recognize_attention, true},
    {"fuse_activations", 2, fuse_activations, true},
    {"matmul_residual", 2, fuse_matmul_residual, true},
    {"batch_norm", 3, fuse_batch_norm, true},
    {"pool_taps", 3, hold_pool_taps, true},
    {"conv_chain", 3, chain_convolutions, true},
    {"conv_pieces", 3, convolve_pieces, true},
    {"round_products", 2, round_products, true},
    {"winograd", 3, use_winograd, true},
    {"strassen", 3, use_strassen, true},
    {"fold_constants", 1, fold_constants},
    {"common_subexpressions", 1, share_subexpressions},
    {"dead_code", 1, remove_dead_code},
};

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

void prepare_differentiation(Graph& root, int level) {
  OptimizeOptions options;
  options.trains = true;
  // What becomes known of one Pad or Resize tells the sizes of the next.
  constexpr int kRounds = 16;
  for (int round = 0; level >= 1 && round < kRounds && fold_sizes(root, options); ++round) infer_graph(root);
  if (level < 2) return;
  recognize_activations(root, options);
  recognize_gelu(root, options);
  recognize_layer_normalization(root, options);
}

void optimize(Graph& root, const OptimizeOptions& given) {
  // Passes are many and their tables small: what one gives back the next takes.
  ChargedResource mappings(root.arena().budget(), Account::kSession);
  FreeLists tables(mappings);
  OptimizeOptions options = given;
  options.tables = &tables;
  std::optional<PassChecker> checker;
  if (options.check_passes) checker.emplace(root);
  int done = 0;
  for (const Pass& pass : kPasses) {
    if (options.stop_after >= 0 && done >= options.stop_after) return;
    ++done;
    if (pass.level > options.level || (pass.makes_ours && options.only_onnx)) continue;
    pass.apply(root, options);
    if (checker) checker->check(fmt::format("pass {} ({})", done, pass.name));
  }
}

}  // namespace plimsoll
