#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = -1;
  int64_t k = 0;  // before opset 10
  bool largest = true;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", -1);
  if (c.opset() < 10) {
    a->k = c.integer("k");
    if (a->k < 0) c.reject("k {} is negative", a->k);
  } else if (c.node().input(1) == nullptr) {
    c.reject("input 1 (K) is missing");
  }
  if (c.opset() >= 11) {
    a->largest = c.integer("largest", 1) != 0;
    c.ignore("sorted");  // sorted is one of the orders that unsorted allows
  }
  return a;
}

Dim known_k(InferContext& c) {
  if (c.opset() < 10) return c.attrs<Attrs>().k;
  c.expect_type(1, types(ElementType::kInt64));
  const auto length = known_length(c, 1);
  if (length && *length != 1) c.reject("K: expected one number, found shape {}", to_string(c.dims(1)));
  const auto values = c.values(1);
  return values && values->size() == 1 ? (*values)[0] : c.unknown("k");
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  const Dim k = known_k(c);
  if (!c.ranked(0)) {
    c.set_unranked_output(0, c.type(0));
    return c.set_unranked_output(1, ElementType::kInt64);
  }
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  if (k.is_constant() && dims[axis].is_constant() && (k.value() < 0 || k.value() > dims[axis].value()))
    c.reject("K {} is outside [0, {}]", k.value(), dims[axis].value());
  dims[axis] = k;
  c.set_output(0, c.type(0), dims);
  c.set_output(1, ElementType::kInt64, dims);
}

const void* select(SelectContext& c) {
  if (!c.ranked(0)) return nullptr;
  const int64_t axis = c.attrs<Attrs>().axis;
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(c.rank(0)) : axis);
  // Positions along the axis, for every thread.
  c.scratch(c.dims(0)[at] * Dim(int64_t{sizeof(int64_t)} * c.threads));
  return nullptr;
}

// NaN counts as the largest number, so that there is an order; equal elements keep theirs.
template <typename T>
bool less(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return x < y;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(y) ? !std::isnan(x) : x < y;
  } else {
    return less(static_cast<float>(x), static_cast<float>(y));
  }
}

// Unsigned integers in the order of `less`, for types of up to 32 bits.
template <typename T>
uint32_t ordered_key(T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (x != x) return UINT32_MAX;
    const uint32_t bits = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);  // both zeros are equal
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint32_t>(static_cast<int64_t>(x) - std::numeric_limits<T>::min());
  } else {
    return ordered_key(static_cast<float>(x));
  }
}

// The first k of [0, size) in an order, sorted.
template <typename P, typename Before>
void sort_first(P* begin, int64_t k, int64_t size, Before before) {
  constexpr int64_t kHeapSize = 8;  // a heap is better for a few
  if (k * kHeapSize <= size) return std::partial_sort(begin, begin + k, begin + size, before);
  if (k < size) std::nth_element(begin, begin + k, begin + size, before);
  std::sort(begin, begin + k, before);
}

// Key and position in one number: equal elements keep their order.
template <typename T>
uint64_t key_at(const T* in, int64_t inner, int64_t i, uint32_t flip) {
  return static_cast<uint64_t>(ordered_key(in[i * inner]) ^ flip) << 32 | static_cast<uint64_t>(i);
}

// Whether an element may come before the last of those that are kept; of floats with a comparison or two, of
// which a loop makes vectors.
template <typename T>
bool may_be_before(const T* in, int64_t count, T last, bool largest) {
  uint32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      any |= largest ? !(in[i] <= last) : !(in[i] >= last);
    } else {
      any |= largest ? ordered_key(in[i]) > ordered_key(last) : ordered_key(in[i]) < ordered_key(last);
    }
  }
  return any != 0;
}

// Into a sorted list of k in place of the last, if it is below that.
inline bool insert_key(uint64_t key, uint64_t* keys, int64_t k) {
  if (key >= keys[k - 1]) return false;
  int64_t at = k - 1;
  for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
  keys[at] = key;
  return true;
}

// The least k keys, sorted, where k is a few of many: each that is below the last one takes its place in
// order. Later elements that equal the last are above it.
template <typename T>
void sort_few_keys(const T* in, int64_t size, int64_t inner, int64_t k, bool largest, uint64_t* keys) {
  constexpr int64_t kBlock = 32;
  const uint32_t flip = largest ? UINT32_MAX : 0;
  for (int64_t i = 0; i < k; ++i) keys[i] = key_at(in, inner, i, flip);
  std::sort(keys, keys + k);
  for (int64_t start = k; start < size; start += kBlock) {
    const int64_t end = std::min(start + kBlock, size);
    const T last = in[static_cast<int64_t>(keys[k - 1] & UINT32_MAX) * inner];
    if (inner == 1 && !may_be_before(in + start, end - start, last, largest)) continue;
    for (int64_t i = start; i < end; ++i) {
      insert_key(key_at(in, inner, i, flip), keys, k);
    }
  }
}

// Of more, those that may still be among them are kept, and thinned out when they are twice as many.
template <typename T>
void sort_some_keys(const T* in, int64_t size, int64_t inner, int64_t k, bool largest, uint64_t* keys) {
  const uint32_t flip = largest ? UINT32_MAX : 0;
  const int64_t most = 2 * k;
  uint64_t bar = UINT64_MAX;
  int64_t count = 0;
  for (int64_t i = 0; i < size; ++i) {
    keys[count] = key_at(in, inner, i, flip);
    count += static_cast<int64_t>(keys[count] < bar);
    if (count < most) continue;
    std::nth_element(keys, keys + k - 1, keys + count);
    bar = keys[k - 1], count = k;
  }
  std::sort(keys, keys + count);
}

constexpr int64_t kFew = 64, kShare = 8;
bool are_few(int64_t k, int64_t size) {
  return k <= kFew && k * kShare <= size;
}

template <typename T>
void sort_keys(const T* in, int64_t size, int64_t inner, int64_t k, bool largest, int64_t* positions) {
  auto* keys = reinterpret_cast<uint64_t*>(positions);
  const uint32_t flip = largest ? UINT32_MAX : 0;
  if (are_few(k, size)) {
    sort_few_keys(in, size, inner, k, largest, keys);
  } else if (k * kShare <= size) {
    sort_some_keys(in, size, inner, k, largest, keys);
  } else {
    for (int64_t i = 0; i < size; ++i) keys[i] = key_at(in, inner, i, flip);
    sort_first(keys, k, size, std::less<>());
  }
  for (int64_t i = 0; i < k; ++i) positions[i] = static_cast<int64_t>(keys[i] & UINT32_MAX);
}

// Lines along the axis: `inner` apart are its elements.
struct Lines {
  int64_t outer, size, inner, k;
  bool largest;
};

template <typename T>
void store(const RunContext& c, const T* in, const Lines& s, int64_t i, int64_t position, int64_t to) {
  if (c.has_output(0)) c.outputs[0].as<T>()[to + i * s.inner] = in[position * s.inner];
  if (c.has_output(1)) c.outputs[1].as<int64_t>()[to + i * s.inner] = position;
}

template <typename T>
void top_of_line(const RunContext& c, const T* in, const Lines& s, int64_t out_at, int64_t* positions) {
  if (sizeof(T) <= sizeof(uint32_t) && s.size <= int64_t{UINT32_MAX}) {
    if constexpr (sizeof(T) <= sizeof(uint32_t)) sort_keys(in, s.size, s.inner, s.k, s.largest, positions);
  } else {
    for (int64_t i = 0; i < s.size; ++i) positions[i] = i;
    sort_first(positions, s.k, s.size, [&](int64_t i, int64_t j) {
      const T x = in[i * s.inner], y = in[j * s.inner];
      if (s.largest ? less(y, x) : less(x, y)) return true;
      if (s.largest ? less(x, y) : less(y, x)) return false;
      return i < j;
    });
  }
  for (int64_t i = 0; i < s.k; ++i) store(c, in, s, i, positions[i], out_at);
}

constexpr int64_t kColumns = 8;  // as many lists of a few keys have room where are_few is true

// Whether any of kColumns elements may come before the last of its own line.
template <typename T>
bool any_may_be_before(const T* row, const T* last, bool largest) {
  uint32_t any = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (largest) {
      for (int64_t i = 0; i < kColumns; ++i) any |= static_cast<uint32_t>(!(row[i] <= last[i]));
    } else {
      for (int64_t i = 0; i < kColumns; ++i) any |= static_cast<uint32_t>(!(row[i] >= last[i]));
    }
  } else {
    for (int64_t i = 0; i < kColumns; ++i)
      any |= static_cast<uint32_t>(may_be_before(row + i, 1, last[i], largest));
  }
  return any != 0;
}

// Up to kColumns lines side by side, row by row: most elements are only compared with the last that is kept.
template <typename T>
void top_of_columns(const RunContext& c, const T* in, const Lines& s, int64_t columns, int64_t out_at,
                    int64_t* positions) {
  auto* keys = reinterpret_cast<uint64_t*>(positions);
  const uint32_t flip = s.largest ? UINT32_MAX : 0;
  T last[kColumns];
  const auto list = [&](int64_t column) { return keys + column * s.k; };
  const auto set_last = [&](int64_t column) {
    last[column] = in[static_cast<int64_t>(list(column)[s.k - 1] & UINT32_MAX) * s.inner + column];
  };
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t i = 0; i < s.k; ++i) list(column)[i] = key_at(in + column, s.inner, i, flip);
    std::sort(list(column), list(column) + s.k);
    set_last(column);
  }
  for (int64_t i = s.k; i < s.size; ++i) {
    const T* row = in + i * s.inner;
    if (columns == kColumns && !any_may_be_before(row, last, s.largest)) continue;
    for (int64_t column = 0; column < columns; ++column) {
      if (!may_be_before(row + column, 1, last[column], s.largest)) continue;
      if (insert_key(key_at(in + column, s.inner, i, flip), list(column), s.k)) set_last(column);
    }
  }
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t i = 0; i < s.k; ++i)
      store(c, in + column, s, i, static_cast<int64_t>(list(column)[i] & UINT32_MAX), out_at + column);
  }
}

template <typename T>
void top_of_all(const RunContext& c, const Lines& s) {
  constexpr int64_t kWorthSharing = 16384, kSortingCosts = 8;  // an element that is only compared: 1
  const int64_t cost = s.outer * s.size * s.inner * (are_few(s.k, s.size) ? 1 : kSortingCosts);
  const bool in_columns = s.inner > 1 && s.k > 0 && sizeof(T) <= sizeof(uint32_t) && are_few(s.k, s.size);
  const int64_t width = in_columns ? kColumns : 1;
  const int64_t groups = (s.inner + width - 1) / width, tasks = s.outer * groups;
  const int64_t workers = cost < kWorthSharing ? 1 : std::min<int64_t>(c.threads, tasks);
  kernels::parallel_for(static_cast<int>(workers), workers, [&](int64_t worker) {
    int64_t* positions = c.scratch_as<int64_t>(0) + worker * s.size;
    for (int64_t task = tasks * worker / workers; task < tasks * (worker + 1) / workers; ++task) {
      const int64_t o = task / groups, first = task % groups * width;
      const T* in = c.inputs[0].as<T>() + o * s.size * s.inner + first;
      const int64_t out_at = o * s.k * s.inner + first;
      if constexpr (sizeof(T) <= sizeof(uint32_t)) {
        if (in_columns) {
          top_of_columns(c, in, s, std::min(width, s.inner - first), out_at, positions);
          continue;
        }
      }
      top_of_line(c, in, s, out_at, positions);
    }
  });
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const TensorView& out = c.outputs[c.has_output(0) ? 0 : 1];
  if (out.elements() == 0) return;
  const int64_t signed_axis = c.attrs<Attrs>().axis;
  const auto axis =
      static_cast<size_t>(signed_axis < 0 ? signed_axis + static_cast<int64_t>(in.rank()) : signed_axis);
  const Lines lines{count_of(in.dims.first(axis)), in.dims[axis], stride_of(in.dims, axis), out.dims[axis],
                    c.attrs<Attrs>().largest};
  visit_numeric(in.type, [&](auto tag) { top_of_all<typename decltype(tag)::type>(c, lines); });
}

void gradient(GradientContext& c) {
  Edge* zeros = c.op("Expand", {c.scalar(0), c.shape_of(c.in(0))});
  const AttributeList attributes = c.attributes().set("axis", c.attrs<Attrs>().axis);
  c.set(0, c.op("ScatterElements", {zeros, c.out(1), c.gradient()}, attributes));
}

}  // namespace

extern const OpDef op_top_k = {
    .name = "TopK",
    .inputs = {1, 2},
    .outputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
