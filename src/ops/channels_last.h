// Moving a tensor between (N, C, spatial) and (N, spatial, C), for operators whose kernels want the
// latter.
#pragma once

#include <cstdint>

#include "graph/op_def.h"

namespace plimsoll {

// The attribute channels_last, which ONNX's own operators do not have: only in our domain.
inline bool read_channels_last(AttrContext& c) {
  return c.node().domain == kPlimsollDomain && c.integer("channels_last", 0) != 0;
}

// `pixels` is the number of positions of one image, T any type of 2, 4 or 8 bytes. Source and destination
// must not overlap.
void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint16_t* from, uint16_t* to,
                      int threads);
void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint32_t* from, uint32_t* to,
                      int threads);
void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint64_t* from, uint64_t* to,
                      int threads);

template <size_t kBytes>
using UnsignedOf =
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>;

template <typename T>
void to_channels_last(int64_t batch, int64_t channels, int64_t pixels, const T* from, T* to, int threads) {
  using Bits = UnsignedOf<sizeof(T)>;
  transpose_images(batch, channels, pixels, reinterpret_cast<const Bits*>(from), reinterpret_cast<Bits*>(to),
                   threads);
}
template <typename T>
void to_channels_first(int64_t batch, int64_t channels, int64_t pixels, const T* from, T* to, int threads) {
  using Bits = UnsignedOf<sizeof(T)>;
  transpose_images(batch, pixels, channels, reinterpret_cast<const Bits*>(from), reinterpret_cast<Bits*>(to),
                   threads);
}

}  // namespace plimsoll
