// Conv and FusedConv: activation(conv(X, W * S) + B + Z), where B, Z, S and the activation may be absent.
#pragma once

#include "kernels/activation.h"
#include "ops/window.h"

namespace plimsoll {

struct ConvAttrs {
  WindowAttrs window;
  int64_t groups = 1;
  kernels::Activation activation;
};

// Inputs by position.
inline constexpr size_t kConvX = 0, kConvW = 1, kConvBias = 2, kConvAddend = 3, kConvScale = 4;

void read_conv(AttrContext& c, ConvAttrs& attrs);
void infer_conv(InferContext& c);
void region_conv(RegionContext& c);  // all channels: weights are never cut
void alias_conv(AliasContext& c);
void packs_conv(PackContext& c);
void pack_conv(const NodeContext& c, size_t input, const TensorView& raw, std::byte* destination);
void select_conv(SelectContext& c);
void run_conv(const RunContext& c);
Cost cost_conv(const NodeContext& c);

}  // namespace plimsoll
