#include "kernels/depthwise.h"

#include "kernels/depthwise_functions.h"

namespace plimsoll::kernels {

template <class T>
size_t depthwise_packed_bytes(const ConvShape& shape) {
  return depthwise_functions<T>().packed_bytes(shape);
}

template <class T>
void depthwise_pack(const ConvShape& shape, const ConvWeights<T>& weights, void* packed) {
  depthwise_functions<T>().pack(shape, weights, static_cast<LaneOf<T>*>(packed));
}

template <class T>
void depthwise_as(const ConvShape& shape, const T* x, const void* packed, T* y,
                  const ConvEpilogue<T>& epilogue, int threads) {
  if (shape.batch == 0 || shape.out_h == 0 || shape.out_w == 0 || shape.in_c == 0) return;
  depthwise_functions<T>().run(shape, x, static_cast<const LaneOf<T>*>(packed), y, epilogue, threads);
}

#define PLIMSOLL_DEPTHWISE(T)                                                      \
  template size_t depthwise_packed_bytes<T>(const ConvShape&);                     \
  template void depthwise_pack<T>(const ConvShape&, const ConvWeights<T>&, void*); \
  template void depthwise_as<T>(const ConvShape&, const T*, const void*, T*, const ConvEpilogue<T>&, int)
PLIMSOLL_DEPTHWISE(float);
PLIMSOLL_DEPTHWISE(double);
PLIMSOLL_DEPTHWISE(Float16);
PLIMSOLL_DEPTHWISE(BFloat16);
#undef PLIMSOLL_DEPTHWISE

}  // namespace plimsoll::kernels
