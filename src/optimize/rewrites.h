// Every rewrite, one file each. Contracts are those of Pass::apply.
#pragma once

#include "optimize/pipeline.h"

namespace plimsoll {

// Removes nodes none of whose outputs is used, and constants that nobody reads.
bool remove_dead_code(Graph& root, const OptimizeOptions& options);
// Removes nodes that only hand their input on.
bool remove_identities(Graph& root, const OptimizeOptions& options);
// Computes nodes whose inputs are constants, and writes down integers that shape arithmetic knows.
bool fold_constants(Graph& root, const OptimizeOptions& options);
// Likewise, but for DequantizeLinear: integers stay integers for the rewrites of quantized models.
bool fold_all_but_dequantized(Graph& root, const OptimizeOptions& options);
// Of constants only what nobody trains: integers, and what has one element.
bool fold_sizes(Graph& root, const OptimizeOptions& options);
// If with a constant condition: the branch takes the node's place.
bool inline_constant_branches(Graph& root, const OptimizeOptions& options);
// Reshape with a constant in place of shape arithmetic, where inference knows what it comes to.
bool use_constant_shapes(Graph& root, const OptimizeOptions& options);
// One node for several that compute the same, one constant for small equal ones.
bool share_subexpressions(Graph& root, const OptimizeOptions& options);
// Silu, HardSwish and HardSigmoid written out in arithmetic.
bool recognize_activations(Graph& root, const OptimizeOptions& options);
// Gelu written out with Erf.
bool recognize_gelu(Graph& root, const OptimizeOptions& options);
// LayerNormalization over the last axis written out with ReduceMean.
bool recognize_layer_normalization(Graph& root, const OptimizeOptions& options);
// Pad by zeros before Conv and AveragePool: padding of their own.
bool fuse_padding(Graph& root, const OptimizeOptions& options);
// BatchNormalization, Mul and Add by constants per channel after Conv: weight scale and bias.
bool fuse_conv_affine(Graph& root, const OptimizeOptions& options);
// BatchNormalization, and Mul and Add by constants per channel, that stay: ScaleShift.
bool fuse_scale_shift(Graph& root, const OptimizeOptions& options);
// Add of a value of the same shape after Conv: its addend.
bool fuse_conv_residual(Graph& root, const OptimizeOptions& options);
// Activations after Conv, matrix products and ScaleShift.
bool fuse_activations(Graph& root, const OptimizeOptions& options);
// MatMul and Gemm as FusedMatMul with what surrounds them: scalars, bias.
bool fuse_matmul(Graph& root, const OptimizeOptions& options);
// MatMulInteger with the scales and the bias behind it as MatMulIntegerToFloat.
bool fuse_integer_matmul(Graph& root, const OptimizeOptions& options);
// Elementwise operators of one 8-bit value, up to a QuantizeLinear: ByteTable.
bool make_byte_tables(Graph& root, const OptimizeOptions& options);
// Conv, MatMul and Gemm between DequantizeLinear and QuantizeLinear: QLinearConv and its kin.
bool fuse_quantized_products(Graph& root, const OptimizeOptions& options);
// MatMul of floats with a large constant behind DequantizeLinear: MatMulNBits of 8 bits.
bool multiply_dequantized_weights(Graph& root, const OptimizeOptions& options);
// Other operators between them, on integers.
bool fuse_quantized_operators(Graph& root, const OptimizeOptions& options);
// QLinearAdd after a channels-last QLinearConv: its addend.
bool fuse_quantized_residual(Graph& root, const OptimizeOptions& options);
// Transposes before and after FusedMatMul.
bool fuse_matmul_transposes(Graph& root, const OptimizeOptions& options);
// Add of a value of the same shape after FusedMatMul.
bool fuse_matmul_residual(Graph& root, const OptimizeOptions& options);
// Convolutions and what is between them on channels-last tensors.
bool use_channels_last(Graph& root, const OptimizeOptions& options);
// BatchNormalization in training with the Add and the Relu behind it, and its gradient with the Relu's.
bool fuse_batch_norm(Graph& root, const OptimizeOptions& options);
// MaxPool in training names the taps that won, for its gradient, which then does without the pooling's input.
bool hold_pool_taps(Graph& root, const OptimizeOptions& options);
// Depthwise convolutions and the 1x1 ones around them as one node that works by bands of rows, where what is
// between them is large.
bool chain_convolutions(Graph& root, const OptimizeOptions& options);
// A convolution of what a Concat makes as a sum of convolutions of its pieces, where those are large.
bool convolve_pieces(Graph& root, const OptimizeOptions& options);
// Products with constant matrices, and channels-last convolutions, in bfloat16: where the options ask for it.
bool round_products(Graph& root, const OptimizeOptions& options);
// Channels-last convolutions of 3x3 by Winograd's way, where that saves much time for the memory it takes.
bool use_winograd(Graph& root, const OptimizeOptions& options);
// Products with constant matrices, and channels-last convolutions of 1x1, by Strassen's way, where it is
// faster.
bool use_strassen(Graph& root, const OptimizeOptions& options);
// Merges, cancels and moves Transposes.
bool simplify_transposes(Graph& root, const OptimizeOptions& options);

}  // namespace plimsoll
