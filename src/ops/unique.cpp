#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/movement.h"
#include "tensor/half_bits.h"

namespace plimsoll {
namespace {

struct UniqueAttrs {
  bool has_axis = false;
  int64_t axis = 0;
  bool sorted = true;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<UniqueAttrs>();
  a->has_axis = c.has("axis");
  if (a->has_axis) a->axis = c.integer("axis");
  a->sorted = c.integer("sorted", 1) != 0;
  return a;
}

// -1, 0 or 1. NaN comes last and is one value; complex numbers go by their real parts first.
template <typename T>
int compare(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, StringRef>) {
    const int order = x.view().compare(y.view());
    return order < 0 ? -1 : order > 0;
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return compare(load_inline(x), load_inline(y));
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const int order = compare(x.real(), y.real());
    return order != 0 ? order : compare(x.imag(), y.imag());
  } else {
    if (x < y) return -1;
    if (x > y) return 1;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x) || std::isnan(y))
        return static_cast<int>(std::isnan(x)) - static_cast<int>(std::isnan(y));
    }
    return 0;
  }
}

template <typename F>
void visit_all(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kString:
      return f(TypeTag<StringRef>{});
    case ElementType::kComplex64:
      return f(TypeTag<std::complex<float>>{});
    case ElementType::kComplex128:
      return f(TypeTag<std::complex<double>>{});
    case ElementType::kBool:
      return f(TypeTag<uint8_t>{});
    default:
      return visit_numeric(type, f);
  }
}

// [outer, count, inner]: `count` slices are compared.
struct Slices {
  int64_t outer = 1, count = 0, inner = 1;
};
Slices slices_of(const UniqueAttrs& a, const TensorView& x) {
  if (!a.has_axis) return {1, x.elements(), 1};
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.rank()) : a.axis);
  return {count_of(x.dims.first(axis)), x.dims[axis], stride_of(x.dims, axis)};
}

// Elements may lie at any address.
template <typename T>
int compare_slices(const TensorView& x, const Slices& s, int64_t i, int64_t j) {
  auto load = [&](int64_t at) {
    T value;
    std::memcpy(static_cast<void*>(&value), x.data + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  };
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t n = 0; n < s.inner; ++n) {
      const int order = compare(load((o * s.count + i) * s.inner + n), load((o * s.count + j) * s.inner + n));
      if (order != 0) return order;
    }
  }
  return 0;
}

// Numbers of up to 32 bits that are ordered as `compare` orders the elements.
template <typename T>
constexpr bool kHasKey = sizeof(T) <= 4 && !std::is_same_v<T, StringRef>;

template <typename T>
uint32_t key_of(T element) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint32_t>(static_cast<int64_t>(element) -
                                 static_cast<int64_t>(std::numeric_limits<T>::min()));
  } else {
    const float value = load_inline(element);
    if (std::isnan(value)) return UINT32_MAX;
    const auto bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0 becomes 0
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
  }
}

// With single elements: key and place, sorted together in the memory of `order`.
template <typename T, typename F>
void group_elements(const TensorView& x, int64_t count, int64_t* order, F&& group) {
  auto* keys = reinterpret_cast<uint64_t*>(order);  // may alias: the unsigned form of the same type
  for (int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(static_cast<void*>(&element), x.data + i * int64_t{sizeof(T)}, sizeof(T));
    keys[i] = uint64_t{key_of(element)} << 32 | static_cast<uint64_t>(i);
  }
  std::sort(keys, keys + count);
  for (int64_t first = 0; first < count;) {
    const uint64_t key = keys[first] >> 32;
    int64_t last = first;
    for (; last < count && keys[last] >> 32 == key; ++last)
      order[last] = static_cast<int64_t>(keys[last] & UINT32_MAX);
    group(first, last);
    first = last;
  }
}

// Sorts the slices; equal ones stay in their order. Calls group(first, last) with the stretch of `order` of
// each value.
template <typename F>
void group_slices(const TensorView& x, const Slices& s, int64_t* order, F&& group) {
  visit_all(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasKey<T>) {
      if (s.outer == 1 && s.inner == 1 && s.count <= int64_t{UINT32_MAX})
        return group_elements<T>(x, s.count, order, group);
    }
    for (int64_t i = 0; i < s.count; ++i) order[i] = i;
    std::sort(order, order + s.count, [&](int64_t i, int64_t j) {
      const int result = compare_slices<T>(x, s, i, j);
      return result != 0 ? result < 0 : i < j;
    });
    for (int64_t first = 0; first < s.count;) {
      int64_t last = first + 1;
      while (last < s.count && compare_slices<T>(x, s, order[first], order[last]) == 0) ++last;
      group(first, last);
      first = last;
    }
  });
}

void set_outputs(InferContext& c, Dim groups, Dim slices) {
  const auto& a = c.attrs<UniqueAttrs>();
  if (!a.has_axis) {
    c.set_output(0, c.type(0), std::vector<Dim>{groups});
  } else if (c.ranked(0)) {
    std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
    dims[static_cast<size_t>(c.axis(a.axis, dims.size()))] = groups;
    c.set_output(0, c.type(0), dims);
  } else {
    c.set_unranked_output(0, c.type(0));
  }
  c.set_output(1, ElementType::kInt64, std::vector<Dim>{groups});
  c.set_output(2, ElementType::kInt64, std::vector<Dim>{slices});
  c.set_output(3, ElementType::kInt64, std::vector<Dim>{groups});
}

Dim slice_count(const NodeContext& c, const UniqueAttrs& a) {
  if (!a.has_axis) return product(c.dims(0));
  return c.dims(0)[static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(c.rank(0)) : a.axis)];
}

void infer(InferContext& c) {
  const auto& a = c.attrs<UniqueAttrs>();
  c.expect_type(0, kNumericTypes | kBoolType |
                       types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128));
  if (!c.ranked(0)) return set_outputs(c, c.unknown("unique"), c.unknown("unique_inputs"));
  if (a.has_axis) c.axis(a.axis, c.rank(0));
  const TensorView* data = c.constant(0);
  if (data == nullptr) return set_outputs(c, c.unknown("unique"), slice_count(c, a));
  const Slices s = slices_of(a, *data);
  const std::span<int64_t> order = c.arena().array<int64_t>(static_cast<size_t>(s.count));
  int64_t groups = 0;
  group_slices(*data, s, order.data(), [&](int64_t, int64_t) { ++groups; });
  set_outputs(c, groups, s.count);
}

// The order of the slices, and where each first occurrence goes.
const void* select(SelectContext& c) {
  if (c.ranked(0)) c.scratch(slice_count(c, c.attrs<UniqueAttrs>()) * Dim(16));
  return nullptr;
}

// Group `group` is made of order[first, last).
void write_group(const RunContext& c, const Slices& s, std::span<const int64_t> members, int64_t group,
                 int64_t groups) {
  const int64_t bytes = s.inner * static_cast<int64_t>(width_of(c.inputs[0].type));
  if (c.has_output(0) && bytes > 0) {
    for (int64_t o = 0; o < s.outer; ++o)
      std::memcpy(c.outputs[0].data + (o * groups + group) * bytes,
                  c.inputs[0].data + (o * s.count + members[0]) * bytes, static_cast<size_t>(bytes));
  }
  if (c.has_output(1)) c.outputs[1].as<int64_t>()[group] = members[0];
  if (c.has_output(2)) {
    for (int64_t member : members) c.outputs[2].as<int64_t>()[member] = group;
  }
  if (c.has_output(3)) c.outputs[3].as<int64_t>()[group] = static_cast<int64_t>(members.size());
}

void run(const RunContext& c) {
  const auto& a = c.attrs<UniqueAttrs>();
  const Slices s = slices_of(a, c.inputs[0]);
  auto* order = reinterpret_cast<int64_t*>(c.scratch);
  int64_t* place = order + s.count;  // of a first occurrence: its group; before: 1 if it is one
  std::fill_n(place, s.count, 0);
  int64_t groups = 0;
  group_slices(c.inputs[0], s, order, [&](int64_t first, int64_t) {
    place[order[first]] = 1;
    ++groups;
  });
  int64_t next = 0;
  for (int64_t i = 0; i < s.count; ++i) {
    if (place[i] != 0) place[i] = ++next;
  }
  int64_t sorted = 0;
  for (int64_t first = 0; first < s.count;) {
    int64_t last = first + 1;
    while (last < s.count && place[order[last]] == 0) ++last;
    const int64_t group = a.sorted ? sorted++ : place[order[first]] - 1;
    write_group(c, s, {order + first, static_cast<size_t>(last - first)}, group, groups);
    first = last;
  }
}

}  // namespace

extern const OpDef op_unique = {
    .name = "Unique",
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
