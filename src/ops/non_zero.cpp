#include <algorithm>
#include <complex>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

// Calls f(linear position) for every element that is not zero, or not an empty string; the data may be
// unaligned.
template <typename T, typename F>
void for_each_nonzero(const TensorView& view, F&& f) {
  const int64_t count = view.elements();
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(static_cast<void*>(&value), view.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    bool set;
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      set = (value.bits & 0x7fff) != 0;
    } else if constexpr (std::is_same_v<T, StringRef>) {
      set = value.size != 0;
    } else {
      set = value != T(0);
    }
    if (set) f(i);
  }
}

template <typename F>
void visit_nonzero(const TensorView& view, F&& f) {
  if (view.type == ElementType::kBool) return for_each_nonzero<uint8_t>(view, f);
  if (view.type == ElementType::kString) return for_each_nonzero<StringRef>(view, f);
  if (view.type == ElementType::kComplex64) return for_each_nonzero<std::complex<float>>(view, f);
  if (view.type == ElementType::kComplex128) return for_each_nonzero<std::complex<double>>(view, f);
  visit_numeric(view.type, [&](auto tag) { for_each_nonzero<typename decltype(tag)::type>(view, f); });
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes | kBoolType |
                       types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128));
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kInt64);
  Dim count;
  if (const TensorView* data = c.constant(0)) {
    int64_t found = 0;
    visit_nonzero(*data, [&](int64_t) { ++found; });
    count = found;
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
  // Positions by rows of the last dimension: the other coordinates of a row are computed once.
  const int64_t cols = in.dims.back();
  int64_t* last = out + (rank - 1) * count;
  int64_t next = 0, first = 0, row = 0, row_end = cols;
  const auto finish_row = [&] {
    int64_t rest = row;
    for (int64_t axis = rank - 1; axis-- > 0;) {
      const int64_t dim = in.dims[static_cast<size_t>(axis)];
      std::fill(out + axis * count + first, out + axis * count + next, rest % dim);
      rest /= dim;
    }
    first = next;
  };
  visit_nonzero(in, [&](int64_t position) {
    if (position >= row_end) {
      finish_row();
      row = position / cols;
      row_end = (row + 1) * cols;
    }
    last[next++] = position - row_end + cols;
  });
  finish_row();
}

}  // namespace

extern const OpDef op_non_zero = {
    .name = "NonZero",
    .infer = infer,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
