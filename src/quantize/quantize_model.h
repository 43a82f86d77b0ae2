// The ways to make a model smaller. Each rewrites the root graph of a model that is resolved and inferred,
// and leaves nodes that must be resolved anew; what its bodies do stays as it is, unless it says otherwise.
#pragma once

#include <optional>

#include "quantize/rewriter.h"

namespace plimsoll {

// Integers with scales that each run finds: DynamicQuantizeLinear, then MatMulInteger or ConvInteger, then
// the scales. Weights of LSTM and of Gather become integers too.
struct DynamicOptions {
  NodeFilter filter;
  ElementType weight_type = ElementType::kInt8;
  std::optional<bool> weight_symmetric;  // by default signed weights are
  bool activation_symmetric = false;     // of tables that Gather reads
  bool per_channel = false, reduce_range = false;
  bool constant_weights_only = true;  // MatMul whose second input is no weight stays
  bool force_all = false;             // ForceQuantizeNoInputCheck
  float least_range = 0;              // MinimumRealRange
  bool bodies = false;                // also what is inside If, Loop and Scan
};
void quantize_dynamic(QuantizeContext& context, const DynamicOptions& options);

// A Gemm that is a product and a sum becomes MatMul and Add, which have forms in integers. It counts as a
// MatMul for the filter, which from then on wants the MatMul where it wanted the Gemm. `only_of_weights`: a
// product of two activations stays.
void gemm_to_matmul(QuantizeContext& context, NodeFilter& filter, bool only_of_weights = false);

// Weights of MatMul in blocks of 2, 4 or 8 bits (MatMulNBits), and with "Gather" among the operators
// embeddings too (GatherBlockQuantized).
struct NBitsOptions {
  NodeFilter filter;  // of op_types, MatMul if there are none
  int bits = 4;
  int64_t block_size = 128;
  bool symmetric = false;
  int accuracy_level = 0;   // written if it is not 0
  bool qdq = false;         // DequantizeLinear of 4 bits in blocks, from opset 21 on, instead
  bool hqq = false;         // zero points that are floats and fit the weights better
  int64_t gather_axis = 1;  // along which embeddings have blocks
  bool gptq = false;
  // With GPTQ: for the input of a product, what gptq_round wants; empty if nothing is known of it, and in a
  // plan.
  std::function<std::span<const double>(std::string_view input)> factor;
};
// The inputs of the products that would be quantized, in order, and the sizes of their last axes.
std::vector<std::pair<std::string, int64_t>> nbits_inputs(const Graph& graph, const NBitsOptions& options);
void quantize_nbits(QuantizeContext& context, const NBitsOptions& options);

// Floats of 16 bits everywhere, bodies too, except in what is excluded and in operators that are better off
// with
// 32. The model's inputs and outputs keep their types where asked, with a Cast behind or before them.
struct HalfOptions {
  NodeFilter filter;
  ElementType type = ElementType::kFloat16;  // or kBFloat16
  bool keep_io_types = false;
};
void convert_to_half(QuantizeContext& context, const HalfOptions& options);

}  // namespace plimsoll
