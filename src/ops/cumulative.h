// What CumSum and CumProd share: every element joined with those before it along an axis.
#pragma once

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {

struct CumulativeAttrs {
  bool exclusive = false;
  bool reverse = false;
};

const void* cumulative_attrs(AttrContext& c);
void infer_cumulative(InferContext& c);
void alias_cumulative(AliasContext& c);
// The axis that input 1 names; throws if there is none such.
size_t cumulative_axis(const RunContext& c);

// Along an axis of `size` steps of `inner` elements, for the columns from `first` to `last`. The half types
// are joined in float.
template <typename T, typename Join>
void cumulate_columns(const CumulativeAttrs& a, const T* in, T* out, int64_t size, int64_t inner,
                      int64_t first, int64_t last, ComputeType<T> start, Join join) {
  using C = ComputeType<T>;
  constexpr int64_t kColumns = 64;
  C sums[kColumns], results[kColumns];
  for (int64_t column = first; column < last; column += kColumns) {
    const int64_t width = std::min(kColumns, last - column);
    std::fill_n(sums, width, start);
    for (int64_t step = 0; step < size; ++step) {
      const int64_t here = (a.reverse ? size - 1 - step : step) * inner + column;
      if (a.exclusive) std::copy_n(sums, width, results);
      RowOperand<T> next(in + here, 1, width);
      const C* values = next.block(0, width);
      for (int64_t i = 0; i < width; ++i) sums[i] = join(sums[i], values[i]);
      const C* to_write = a.exclusive ? results : sums;
      if constexpr (kernels::kIsHalf<T>) {
        kernels::narrow(to_write, out + here, width);
      } else {
        std::copy_n(to_write, width, out + here);
      }
    }
  }
}

// Along rows whose elements are next to each other.
template <typename T, typename Join>
void cumulate_row(const CumulativeAttrs& a, const T* in, T* out, int64_t size, ComputeType<T> start,
                  Join join) {
  using C = ComputeType<T>;
  C results[RowOperand<T>::kBlock], sum = start;
  constexpr int64_t kBlock = RowOperand<T>::kBlock;
  for (int64_t done = 0; done < size; done += kBlock) {
    const int64_t count = std::min(kBlock, size - done), from = a.reverse ? size - done - count : done;
    RowOperand<T> next(in + from, 1, count);
    const C* values = next.block(0, count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = a.reverse ? count - 1 - i : i;
      const C joined = join(sum, values[at]);
      results[at] = a.exclusive ? sum : joined;
      sum = joined;
    }
    map_chunk(results, out + from, count, [](C value) { return value; });
  }
}

template <typename T, typename Join>
void cumulate(const RunContext& c, ComputeType<T> start, Join join) {
  const TensorView& in = c.inputs[0];
  const size_t axis = cumulative_axis(c);
  if (in.elements() == 0) return;
  const int64_t size = in.dims[axis], inner = stride_of(in.dims, axis);
  constexpr int64_t kColumns = 1024;
  const int64_t strips = (inner + kColumns - 1) / kColumns;
  kernels::parallel_for(
      in.elements() < 32768 ? 1 : c.threads, in.elements() / (size * inner) * strips, [&](int64_t task) {
        const int64_t at = task / strips * size * inner, first = task % strips * kColumns;
        if (inner == 1)
          return cumulate_row(c.attrs<CumulativeAttrs>(), in.as<T>() + at, c.outputs[0].as<T>() + at, size,
                              start, join);
        cumulate_columns(c.attrs<CumulativeAttrs>(), in.as<T>() + at, c.outputs[0].as<T>() + at, size, inner,
                         first, std::min(inner, first + kColumns), start, join);
      });
}

}  // namespace plimsoll
