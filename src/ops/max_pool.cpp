#include <limits>

#include "ops/layout.h"
#include "ops/pool_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolAttrs>();
  read_pool(c, *a);
  a->column_major = c.integer("storage_order", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  infer_pool(c, kFloatTypes | types(ElementType::kInt8, ElementType::kUint8));
}

// Indices count the elements of (N, C, spatial...) whatever the layout; spatial ones in column-major order if
// storage_order says so.
SpatialStrides index_strides(const Window& w, bool column_major) {
  SpatialStrides s = strides_of(w.rank, w.channels, w.in, false);
  if (!column_major) return s;
  int64_t stride = 1;
  for (size_t i = 0; i < w.rank; ++i) {
    s.spatial[i] = stride;
    stride *= w.in[i];
  }
  return s;
}

template <typename T>
using Comparable = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <typename T>
void max_pool_any(const Window& w, bool column_major, const T* x, T* y, int64_t* indices) {
  const SpatialStrides in = strides_of(w.rank, w.channels, w.in, w.channels_last);
  const SpatialStrides numbers = index_strides(w, column_major);
  for_each_window(w, [&](int64_t n, int64_t c, const Spatial& at, int64_t to) {
    T best = static_cast<T>(std::numeric_limits<Comparable<T>>::lowest());
    int64_t index = -1;
    for_each_tap(w, at, [&](const Spatial& from) {
      int64_t offset = n * in.batch + c * in.channel, number = n * numbers.batch + c * numbers.channel;
      for (size_t i = 0; i < w.rank; ++i) {
        offset += from[i] * in.spatial[i];
        number += from[i] * numbers.spatial[i];
      }
      if (index >= 0 && !(static_cast<Comparable<T>>(x[offset]) > static_cast<Comparable<T>>(best))) return;
      best = x[offset];
      index = number;
    });
    y[to] = best;
    if (indices != nullptr) indices[to] = index;
  });
}

void run(const RunContext& c) {
  const Window w = pool_window(c);
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  int64_t* indices = c.has_output(1) ? c.outputs[1].as<int64_t>() : nullptr;
  if (indices == nullptr && is_plane_pool(x, w))
    return visit_float(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels::max_pool(plane_shape(w), x.as<T>(), y.as<T>(), c.threads);
    });
  const auto any = [&](auto tag) {
    using T = typename decltype(tag)::type;
    max_pool_any<T>(w, c.attrs<PoolAttrs>().column_major, x.as<T>(), y.as<T>(), indices);
  };
  if (x.type == ElementType::kInt8) return any(TypeTag<int8_t>{});
  if (x.type == ElementType::kUint8) return any(TypeTag<uint8_t>{});
  visit_float(x.type, any);
}

}  // namespace

extern const OpDef op_max_pool = {
    .name = "MaxPool",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout_windowed,
    .region = region_pool,
    .channels_last = true,
};

}  // namespace plimsoll
