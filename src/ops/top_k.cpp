#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "graph/gradient.h"
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
  c.scratch(c.dims(0)[at] * Dim(sizeof(int64_t)));  // positions along the axis
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
      const uint64_t key = key_at(in, inner, i, flip);
      if (key >= keys[k - 1]) continue;
      int64_t at = k - 1;
      for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
      keys[at] = key;
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

template <typename T>
void sort_keys(const T* in, int64_t size, int64_t inner, int64_t k, bool largest, int64_t* positions) {
  constexpr int64_t kFew = 64, kShare = 8;
  auto* keys = reinterpret_cast<uint64_t*>(positions);
  const uint32_t flip = largest ? UINT32_MAX : 0;
  if (k <= kFew && k * kShare <= size) {
    sort_few_keys(in, size, inner, k, largest, keys);
  } else if (k * kShare <= size) {
    sort_some_keys(in, size, inner, k, largest, keys);
  } else {
    for (int64_t i = 0; i < size; ++i) keys[i] = key_at(in, inner, i, flip);
    sort_first(keys, k, size, std::less<>());
  }
  for (int64_t i = 0; i < k; ++i) positions[i] = static_cast<int64_t>(keys[i] & UINT32_MAX);
}

template <typename T>
void top_of_slice(const RunContext& c, const T* in, int64_t size, int64_t inner, int64_t k, int64_t out_at) {
  auto* positions = reinterpret_cast<int64_t*>(c.scratch);
  const bool largest = c.attrs<Attrs>().largest;
  if (sizeof(T) <= sizeof(uint32_t) && size <= int64_t{UINT32_MAX}) {
    if constexpr (sizeof(T) <= sizeof(uint32_t)) sort_keys(in, size, inner, k, largest, positions);
  } else {
    for (int64_t i = 0; i < size; ++i) positions[i] = i;
    sort_first(positions, k, size, [&](int64_t i, int64_t j) {
      const T x = in[i * inner], y = in[j * inner];
      if (largest ? less(y, x) : less(x, y)) return true;
      if (largest ? less(x, y) : less(y, x)) return false;
      return i < j;
    });
  }
  for (int64_t i = 0; i < k; ++i) {
    if (c.has_output(0)) c.outputs[0].as<T>()[out_at + i * inner] = in[positions[i] * inner];
    if (c.has_output(1)) c.outputs[1].as<int64_t>()[out_at + i * inner] = positions[i];
  }
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const TensorView& out = c.outputs[c.has_output(0) ? 0 : 1];
  if (out.elements() == 0) return;
  const int64_t signed_axis = c.attrs<Attrs>().axis;
  const auto axis =
      static_cast<size_t>(signed_axis < 0 ? signed_axis + static_cast<int64_t>(in.rank()) : signed_axis);
  const int64_t size = in.dims[axis], inner = stride_of(in.dims, axis), k = out.dims[axis];
  const int64_t outer = count_of(in.dims.first(axis));
  visit_numeric(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t n = 0; n < outer * inner; ++n) {
      const int64_t o = n / inner, i = n % inner;
      top_of_slice(c, in.as<T>() + o * size * inner + i, size, inner, k, o * k * inner + i);
    }
  });
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
