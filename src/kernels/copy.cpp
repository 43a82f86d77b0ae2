#include "kernels/copy.h"

#include <algorithm>
#include <utility>

#include "hwy/highway.h"
#include "kernels/parallel.h"
#include "tensor/small_types.h"

namespace plimsoll::kernels {

void CopyShape::add(int64_t dim, int64_t source_stride, int64_t target_stride) {
  if (dim == 0) empty = true;
  if (dim == 1 || empty) return;
  if (rank > 0) {
    const size_t last = rank - 1;
    if (source_stride == source[last] * dims[last] && target_stride == target[last] * dims[last]) {
      dims[last] *= dim;
      return;
    }
  }
  dims[rank] = dim;
  source[rank] = source_stride;
  target[rank] = target_stride;
  ++rank;
}

namespace {

struct alignas(8) Element16 {
  uint64_t lo, hi;
};

// The two innermost axes. For rows the first is contiguous on both sides; for a transpose the first is
// contiguous in the target and the second in the source.
enum class Inner { kRows, kTranspose, kSplat, kScattered };

struct Plane {
  int64_t dims[2];
  int64_t source[2];
  int64_t target[2];
};

template <typename T>
void copy_rows(T* t, const T* s, const Plane& p) {
  constexpr int64_t kShortRow = 32 / sizeof(T);
  const auto bytes = static_cast<size_t>(p.dims[0]) * sizeof(T);
  for (int64_t j = 0; j < p.dims[1]; ++j, t += p.target[1], s += p.source[1]) {
    if (p.dims[0] > kShortRow) {
      std::memcpy(t, s, bytes);
    } else {
      for (int64_t i = 0; i < p.dims[0]; ++i) t[i] = s[i];
    }
  }
}

template <typename T>
void copy_scattered(T* t, const T* s, const Plane& p) {
  for (int64_t j = 0; j < p.dims[1]; ++j, t += p.target[1], s += p.source[1]) {
    for (int64_t i = 0; i < p.dims[0]; ++i) t[i * p.target[0]] = s[i * p.source[0]];
  }
}

template <typename T>
void copy_splat(T* t, const T* s, const Plane& p) {
  for (int64_t j = 0; j < p.dims[1]; ++j, t += p.target[1], s += p.source[1]) {
    const T value = *s;
    for (int64_t i = 0; i < p.dims[0]; ++i) t[i] = value;
  }
}

// t[j * tj + i] = s[i * si + j] for a 4x4 block.
void transpose_block(uint32_t* t, int64_t tj, const uint32_t* s, int64_t si) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<uint32_t, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto r0 = hn::LoadU(d, s), r1 = hn::LoadU(d, s + si), r2 = hn::LoadU(d, s + 2 * si),
             r3 = hn::LoadU(d, s + 3 * si);
  const auto a = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
  const auto b = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
  const auto c = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, a, c)), d, t);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, a, c)), d, t + tj);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, b, e)), d, t + 2 * tj);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, b, e)), d, t + 3 * tj);
}

// A tile of at most kTile x kTile elements, so that every cache line it touches is used up.
constexpr int64_t kTile = 16;

template <typename T>
void transpose_tile(T* t, const T* s, int64_t rows, int64_t columns, int64_t source_stride,
                    int64_t target_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
  if constexpr (sizeof(T) == 4) {
    whole_rows = rows & ~int64_t{3};
    whole_columns = columns & ~int64_t{3};
    auto block = [&](int64_t i, int64_t j) {
      transpose_block(t + j * target_stride + i, target_stride, s + i * source_stride + j, source_stride);
    };
    // Lines that are far apart evict each other: finish those of the wider stride four at a time.
    if (target_stride > source_stride) {
      for (int64_t j = 0; j < whole_columns; j += 4) {
        for (int64_t i = 0; i < whole_rows; i += 4) block(i, j);
      }
    } else {
      for (int64_t i = 0; i < whole_rows; i += 4) {
        for (int64_t j = 0; j < whole_columns; j += 4) block(i, j);
      }
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
      t[j * target_stride + i] = s[i * source_stride + j];
  }
}

// Few streams on one side, such as the three channels of an image: one pass, no tiles.
template <typename T, int kStreams>
void interleave(T* t, const T* s, const Plane& p) {
  int64_t j = 0;
  if constexpr (kStreams == 3 && (sizeof(T) == 1 || sizeof(T) == 4)) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::FixedTag<T, 16 / sizeof(T)> d;
    constexpr int64_t kLanes = 16 / sizeof(T);
    for (; p.target[1] == 3 && j + kLanes <= p.dims[1]; j += kLanes)
      hn::StoreInterleaved3(hn::LoadU(d, s + j), hn::LoadU(d, s + p.source[0] + j),
                            hn::LoadU(d, s + 2 * p.source[0] + j), d, t + 3 * j);
  }
  for (; j < p.dims[1]; ++j) {
    for (int64_t i = 0; i < kStreams; ++i) t[j * p.target[1] + i] = s[i * p.source[0] + j];
  }
}

template <typename T>
void copy_transpose(T* t, const T* s, const Plane& p) {
  if (p.dims[0] == 2) return interleave<T, 2>(t, s, p);
  if (p.dims[0] == 3) return interleave<T, 3>(t, s, p);
  for (int64_t j = 0; j < p.dims[1]; j += kTile) {
    for (int64_t i = 0; i < p.dims[0]; i += kTile)
      transpose_tile(t + j * p.target[1] + i, s + i * p.source[0] + j, std::min(kTile, p.dims[0] - i),
                     std::min(kTile, p.dims[1] - j), p.source[0], p.target[1]);
  }
}

template <typename T>
void copy_plane(Inner inner, T* t, const T* s, const Plane& plane) {
  switch (inner) {
    case Inner::kRows:
      return copy_rows(t, s, plane);
    case Inner::kTranspose:
      return copy_transpose(t, s, plane);
    case Inner::kSplat:
      return copy_splat(t, s, plane);
    case Inner::kScattered:
      return copy_scattered(t, s, plane);
  }
}

// Moves the axes that belong together to places 0 and 1 and names the loop for them.
Inner choose_inner(CopyShape& shape) {
  auto bring_to = [&](size_t place, size_t axis) {
    std::swap(shape.dims[place], shape.dims[axis]);
    std::swap(shape.source[place], shape.source[axis]);
    std::swap(shape.target[place], shape.target[axis]);
  };
  if (shape.target[0] != 1) return Inner::kScattered;
  if (shape.source[0] == 1) return Inner::kRows;
  for (size_t axis = 1; axis < shape.rank; ++axis) {
    if (shape.source[axis] != 1) continue;
    bring_to(1, axis);
    return Inner::kTranspose;
  }
  return shape.source[0] == 0 ? Inner::kSplat : Inner::kScattered;
}

template <typename T>
void copy_typed(T* target, const T* source, const CopyShape& shape, Inner inner, int threads) {
  int64_t outer = 1;
  for (size_t axis = 2; axis < shape.rank; ++axis) outer *= shape.dims[axis];
  Plane plane{
      {shape.dims[0], shape.dims[1]}, {shape.source[0], shape.source[1]}, {shape.target[0], shape.target[1]}};

  // A task is a band of the second axis, or several whole planes.
  constexpr int64_t kTaskElements = 1 << 15;
  const int64_t plane_elements = plane.dims[0] * plane.dims[1];
  int64_t band = plane.dims[1], planes_per_task = 1;
  if (plane_elements > kTaskElements) {
    band = std::max(kTile, kTaskElements / plane.dims[0] / kTile * kTile);
  } else {
    planes_per_task = kTaskElements / plane_elements;
  }
  const int64_t bands = (plane.dims[1] + band - 1) / band;
  const int64_t tasks = (outer + planes_per_task - 1) / planes_per_task * bands;
  parallel_for(threads, tasks, [&](int64_t task) {
    const int64_t first = task / bands * planes_per_task;
    const int64_t start = task % bands * band;
    Plane piece = plane;
    piece.dims[1] = std::min(band, plane.dims[1] - start);
    int64_t index[CopyShape::kMaxAxes];
    int64_t s = start * plane.source[1], t = start * plane.target[1], rest = first;
    for (size_t axis = 2; axis < shape.rank; ++axis) {
      index[axis] = rest % shape.dims[axis];
      rest /= shape.dims[axis];
      s += index[axis] * shape.source[axis];
      t += index[axis] * shape.target[axis];
    }
    for (int64_t i = first; i < std::min(outer, first + planes_per_task); ++i) {
      copy_plane(inner, target + t, source + s, piece);
      for (size_t axis = 2; axis < shape.rank; ++axis) {
        s += shape.source[axis];
        t += shape.target[axis];
        if (++index[axis] < shape.dims[axis]) break;
        index[axis] = 0;
        s -= shape.source[axis] * shape.dims[axis];
        t -= shape.target[axis] * shape.dims[axis];
      }
    }
  });
}

template <typename F>
void with_width(size_t width, F&& f) {
  switch (width) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Element16{});
  }
}

}  // namespace

void strided_copy(std::byte* target, const std::byte* source, const CopyShape& shape, size_t width,
                  int threads) {
  if (shape.empty) return;
  CopyShape nest = shape;
  const bool contiguous = nest.rank == 0 || (nest.rank == 1 && nest.source[0] == 1 && nest.target[0] == 1);
  if (contiguous && target == source) return;
  for (; nest.rank < 2; ++nest.rank) {
    nest.dims[nest.rank] = 1;
    nest.source[nest.rank] = nest.rank == 0 ? 1 : 0;
    nest.target[nest.rank] = nest.rank == 0 ? 1 : 0;
  }
  const Inner inner = choose_inner(nest);
  with_width(width, [&](auto element) {
    using T = decltype(element);
    copy_typed(reinterpret_cast<T*>(target), reinterpret_cast<const T*>(source), nest, inner, threads);
  });
}

void fill(std::byte* target, int64_t count, const std::byte* value, size_t width) {
  with_width(width, [&](auto element) {
    std::memcpy(static_cast<void*>(&element), value, sizeof(element));
    std::fill_n(reinterpret_cast<decltype(element)*>(target), count, element);
  });
}

void strided_copy_bits(std::byte* target, int64_t target_at, const std::byte* source, int64_t source_at,
                       const CopyShape& shape, int bits) {
  if (shape.empty) return;
  int64_t at[CopyShape::kMaxAxes] = {};
  for (;;) {
    set_packed_bits(target, bits, target_at, packed_bits(source, bits, source_at));
    size_t axis = 0;
    for (; axis < shape.rank; ++axis) {
      source_at += shape.source[axis];
      target_at += shape.target[axis];
      if (++at[axis] < shape.dims[axis]) break;
      source_at -= shape.source[axis] * shape.dims[axis];
      target_at -= shape.target[axis] * shape.dims[axis];
      at[axis] = 0;
    }
    if (axis == shape.rank) return;
  }
}

}  // namespace plimsoll::kernels
