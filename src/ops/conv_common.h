// Conv and FusedConv: activation(conv(X, W * S) + B + Z), where B, Z, S and the activation may be absent.
#pragma once

#include "kernels/activation.h"
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include "ops/window.h"

namespace plimsoll {

struct ConvAttrs {
  WindowAttrs window;
  int64_t groups = 1;
  kernels::Activation activation;
  kernels::WinogradForm winograd = kernels::WinogradForm::kNone;
  bool strassen = false;  // a 1x1 with constant weights: by kernels/strassen.h where that is faster
  bool rounded = false;   // X and a constant W are rounded to bfloat16 before they are multiplied
  // W's input channels that X has; 0: all of them.
  int64_t first_channel = 0, some_channels = 0;
  int64_t channels_of(int64_t weight_channels) const {
    return some_channels > 0 ? some_channels : checked_mul(weight_channels, groups);
  }
};

// Inputs by position.
inline constexpr size_t kConvX = 0, kConvW = 1, kConvBias = 2, kConvAddend = 3, kConvScale = 4;

enum class ConvKernel : uint8_t {
  kReference,  // by the definition: any rank
  kDense,      // groups of any number of channels
  kDepthwise,  // as many groups as channels
  kRounded,    // a plane of one group, channels last, in bfloat16
};

// A convolution of rank 3 is a sum of plane convolutions over its depth; one of rank 1 is a plane of
// height 1.
struct ConvChoice {
  ConvKernel kernel = ConvKernel::kReference;
  kernels::WinogradForm winograd = kernels::WinogradForm::kNone;  // of a dense one of floats or halves
  bool strassen = false;                                          // of a dense 1x1 of float
  bool packed = false;        // W comes in the kernel's format; otherwise it is packed into scratch
  bool channels_last = true;  // otherwise X and Y are copied
  bool widened = false;       // 16-bit planes that add up: all is copied to float, and computed in it
  kernels::ConvShape shape;   // of one plane
  int64_t depth = 1;          // kernel planes
  int64_t plane_bytes = 0;    // packed weights of one of them
  int64_t first_channel = 0, weight_channels = 0;  // of W, where the plane has some of them; else 0
  int64_t in_pixels = 0, out_pixels = 0;
  const Window* window = nullptr;                             // of the reference, and where there is depth
  int64_t packed_at = 0, x_at = 0, y_at = 0, working_at = 0;  // offsets in scratch
  int64_t wide_at = 0;                                        // the other operands, widened
  int threads = 1;                                            // as select was told
};

void read_conv(AttrContext& c, ConvAttrs& attrs);
kernels::WinogradForm read_winograd(AttrContext& c);  // the attribute `winograd` of operators of our own
void infer_conv(InferContext& c);
void region_conv(RegionContext& c);  // all channels: weights are never cut
void alias_conv(AliasContext& c);
const void* select_conv(SelectContext& c);
void pack_conv(const PackContext& c);
void run_conv(const RunContext& c);
Cost cost_conv(const NodeContext& c);

// A 1x1 convolution of all pixels, of one group and with a stride of 1.
inline kernels::GemmShape product_of(const kernels::ConvShape& s) {
  return {s.batch * s.out_h * s.out_w, s.in_c, s.out_c};
}

// Of the kernel kRounded: rows of a product (kernels/rounded_gemm.h) are what the kernel sees from each
// output pixel, put together from X, which is rounded first unless no pixel is read twice.
bool is_fit_for_rounded(const ConvAttrs& attrs, ElementType type, std::span<const int64_t> w);
bool rounds_image(const kernels::ConvShape& shape);
kernels::GemmShape rounded_product(const kernels::ConvShape& shape);
void pack_rounded_conv(const kernels::ConvShape& shape, const kernels::ConvWeights<>& weights, void* packed);
// `image`: as many elements as X, where it is rounded.
void run_rounded_conv(const kernels::ConvShape& shape, const float* x, const void* packed, float* y,
                      const kernels::ConvEpilogue<>& epilogue, BFloat16* image, void* working, int threads);

// Writes W, times one factor per output channel if `scale` is not null, in the kernel's format.
template <typename T>
void pack_conv_weights(const ConvChoice& choice, const void* raw, const T* scale, std::byte* destination);

// The dimensions, where they are all constants.
std::optional<std::vector<int64_t>> constant_dims(const Facts& facts);

}  // namespace plimsoll
