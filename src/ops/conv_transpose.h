// Transposed convolution. Output positions with the same remainder modulo the stride see the same taps of the
// kernel, and together they are an ordinary convolution of stride 1: the fast path runs one for each
// remainder
// ("phase"), storing with the stride.
#pragma once

#include "base/checked.h"
#include "kernels/winograd.h"
#include "ops/window.h"

namespace plimsoll {

struct TransposeAttrs {
  WindowAttrs window;
  int64_t groups = 1;
  std::span<const int64_t> output_padding, output_shape;
  bool is_gradient = false;  // of a Conv with this window: input 2 is the shape of its input, not a bias
  kernels::WinogradForm winograd = kernels::WinogradForm::kNone;
  int64_t extra(size_t i) const { return output_padding.empty() ? 0 : output_padding[i]; }
};

enum class TransposeKernel : uint8_t {
  kReference,  // by the definition: any rank
  kPhases,     // up to two dimensions
  kDepthwise,  // likewise, of stride 1, as many groups as channels
};

// What weights and attributes alone tell, dimensions as height and width. A kernel as wide as its stride
// makes one convolution of a whole row of phases, whose outputs lie side by side.
struct TransposePlan {
  int64_t groups = 1, in_c = 0, out_c = 0;
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  bool side_by_side = false;
  kernels::WinogradForm winograd = kernels::WinogradForm::kNone;  // of the only phase

  int64_t phases_w() const { return side_by_side ? 1 : stride[1]; }
};

struct TransposeChoice {
  TransposeKernel kernel = TransposeKernel::kReference;
  bool packed = false;        // W comes as packed phases; otherwise they are packed into scratch
  bool channels_last = true;  // otherwise X and Y are copied
  TransposePlan plan;
  int64_t batch = 0;
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, begin[2] = {0, 0};  // begin: outputs cut off before the first
  const Window* window = nullptr;                              // of the reference
  int64_t bias_at = 0, packed_at = 0, x_at = 0, y_at = 0, working_at = 0;  // offsets in scratch
};

Cost cost_conv_transpose(const NodeContext& c);
const void* select_conv_transpose(SelectContext& c);
void pack_conv_transpose(const PackContext& c);
void run_conv_transpose(const RunContext& c);

// Size of the output if nothing is cut off.
Dim full_transpose_output(const TransposeAttrs& a, size_t i, Dim in, Dim kernel);

// Taps first, first + step, ... that meet output positions of one remainder, along one dimension.
struct PhaseTaps {
  int64_t first = 0, step = 1, count = 0;
  int64_t dilation = 1;  // input positions between neighbouring taps; they run backwards
};
PhaseTaps phase_taps(int64_t remainder, int64_t kernel, int64_t stride, int64_t dilation);
// The convolution of the phase with these taps, but for sizes and padding.
kernels::ConvShape phase_shape(const TransposePlan& p, const PhaseTaps& h, const PhaseTaps& w);

// Bytes of a phase's packed weights.
template <typename T>
int64_t phase_packed_bytes(const TransposePlan& p, const kernels::ConvShape& phase) {
  if (p.winograd != kernels::WinogradForm::kNone)
    return static_cast<int64_t>(kernels::winograd_packed_bytes(phase, p.winograd));
  return static_cast<int64_t>(kernels::conv_packed_bytes<T>(phase));
}

// Calls f(remainder_h, remainder_w, taps_h, taps_w, offset of its packed weights); returns the bytes of them
// all, for elements of type T.
template <typename T, typename F>
int64_t for_each_phase(const TransposePlan& p, F&& f) {
  int64_t offset = 0;
  for (int64_t h = 0; h < p.stride[0]; ++h) {
    for (int64_t w = 0; w < p.phases_w(); ++w) {
      const PhaseTaps taps_h = phase_taps(h, p.kernel[0], p.stride[0], p.dilation[0]);
      PhaseTaps taps_w = phase_taps(w, p.kernel[1], p.stride[1], p.dilation[1]);
      if (p.side_by_side) taps_w = {0, 1, 1, 1};
      f(h, w, taps_h, taps_w, offset);
      if (taps_h.count > 0 && taps_w.count > 0)
        offset = checked_add(offset, phase_packed_bytes<T>(p, phase_shape(p, taps_h, taps_w)));
    }
  }
  return offset;
}
template <typename T>
void pack_phases(const TransposePlan& p, const void* raw, std::byte* destination);

}  // namespace plimsoll
