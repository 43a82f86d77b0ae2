// Convolution with a 3x3 kernel, stride 1, by Winograd's F(m x m, 3 x 3): a tile of m x m output pixels takes
// (m + 2)^2 multiplications for each pair of channels instead of 9 m^2. On channels-last tensors,
// weights transformed and packed ahead; the contract of conv.h otherwise. Halves are widened as they are
// read, and their transformed weights are floats. A dilated kernel sees every d-th pixel only: it is d x d
// convolutions without dilation, each over a part of the image.
//
// Numerics: an element of F(4 x 4) is off by some 1e-6 of the root of the sum of its terms' squares, ten
// times what summing them rounds off; F(2 x 2) by less. An infinity or a NaN reaches the whole tile. Results
// depend neither on threads nor on blocks.
#pragma once

#include "kernels/conv.h"

namespace plimsoll::kernels {

enum class WinogradForm : uint8_t { kNone = 0, kTwo = 2, kFour = 4 };  // the m of F(m x m, 3 x 3)

// Kernel, stride and groups allow it.
bool winograd_applies(const ConvShape& shape);
// Tiles of all images, those included that dilation leaves empty.
int64_t winograd_tiles(const ConvShape& shape, WinogradForm form);

size_t winograd_packed_bytes(const ConvShape& shape, WinogradForm form);
template <class T = float>
void winograd_pack(const ConvShape& shape, WinogradForm form, const ConvWeights<T>& weights, void* packed,
                   int threads = 1);

// For a concrete shape and all threads; and for every size of image.
size_t winograd_scratch_bytes(const ConvShape& shape, WinogradForm form, int threads);
size_t winograd_most_scratch_bytes(const ConvShape& shape, WinogradForm form, int threads);

// T is float, Float16 or BFloat16.
template <class T>
void winograd(const ConvShape& shape, WinogradForm form, const T* x, const void* packed, T* y,
              const ConvEpilogue<T>& epilogue, void* scratch, int threads);

}  // namespace plimsoll::kernels
