#include <algorithm>
#include <complex>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

// What tells elements that are not zero, or not an empty string; the data may be unaligned.
template <typename T>
bool is_set(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(static_cast<void*>(&value), data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return (value.bits & 0x7fff) != 0;
  } else if constexpr (std::is_same_v<T, StringRef>) {
    return value.size != 0;
  } else {
    return value != T(0);
  }
}

// Calls f(TypeTag of what an element is read as).
template <typename F>
void visit_tested(ElementType type, F&& f) {
  if (type == ElementType::kBool) return f(TypeTag<uint8_t>{});
  if (type == ElementType::kString) return f(TypeTag<StringRef>{});
  if (type == ElementType::kComplex64) return f(TypeTag<std::complex<float>>{});
  if (type == ElementType::kComplex128) return f(TypeTag<std::complex<double>>{});
  visit_numeric(type, f);
}

int64_t count_set(const TensorView& view) {
  int64_t found = 0;
  visit_tested(view.type, [&](auto tag) {
    for (int64_t i = 0; i < view.elements(); ++i)
      found += static_cast<int64_t>(is_set<typename decltype(tag)::type>(view.data, i));
  });
  return found;
}

// Positions of the elements of a row that are set, at most `room` of them, and how many those are. Without
// branches that depend on the data.
template <typename T>
int64_t set_in_row(const std::byte* data, int64_t start, int64_t cols, int64_t* to, int64_t room) {
  int64_t next = 0;
  for (int64_t i = 0; i < cols && next < room; ++i) {
    to[next] = i;
    next += static_cast<int64_t>(is_set<T>(data, start + i));
  }
  return next;
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes | kBoolType |
                       types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128));
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kInt64);
  Dim count;
  if (const TensorView* data = c.constant(0)) {
    count = count_set(*data);
  } else {
    count = c.unknown("nonzero");
  }
  c.set_output(0, ElementType::kInt64, {Dim(static_cast<int64_t>(c.rank(0))), count});
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const auto rank = static_cast<int64_t>(in.rank());
  const int64_t count = c.outputs[0].dims[1];
  int64_t* out = c.outputs[0].as<int64_t>();
  if (rank == 0 || count == 0) return;
  // By rows of the last dimension: the other coordinates of a row are computed once.
  const int64_t cols = in.dims.back(), rows = in.elements() / cols;
  int64_t* last = out + (rank - 1) * count;
  visit_tested(in.type, [&](auto tag) {
    int64_t first = 0;
    for (int64_t row = 0; row < rows && first < count; ++row) {
      const int64_t next = first + set_in_row<typename decltype(tag)::type>(in.data, row * cols, cols,
                                                                            last + first, count - first);
      int64_t rest = row;
      for (int64_t axis = rank - 1; axis-- > 0;) {
        const int64_t dim = in.dims[static_cast<size_t>(axis)];
        std::fill(out + axis * count + first, out + axis * count + next, rest % dim);
        rest /= dim;
      }
      first = next;
    }
  });
}

}  // namespace

extern const OpDef op_non_zero = {
    .name = "NonZero",
    .infer = infer,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
