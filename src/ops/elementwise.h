// What elementwise operators share: inference, aliasing, and loops over every element type.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <type_traits>

#include "graph/op_def.h"
#include "kernels/binary.h"
#include "kernels/storage.h"
#include "kernels/unary.h"
#include "ops/layout.h"
#include "ops/region.h"

namespace plimsoll {

// ---- elements ------------------------------------------------------------------------------------

// The half types compute in float.
template <typename T>
using ComputeType = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

template <typename T>
ComputeType<T> load_element(T value) {
  return static_cast<ComputeType<T>>(value);
}

// Float16 without branches, so that loops over it become vectors; the results are those of its conversions.
// Exponent and fraction, moved to where a float has them, are the number times 2^-112.
inline float load_element(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t shifted = static_cast<uint32_t>(value.bits & 0x7fff) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  return std::bit_cast<float>((shifted >= 0x0f800000 ? shifted | 0x7f800000 : finite) | sign);
}

// Where integers wrap: an unsigned type that does not promote to a signed one.
template <typename T>
using WrapType = std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>;

// Toward zero. What lies outside saturates at 32 and 64 bits and loses its high bits below; NaN is 0.
template <typename T>
T cast_to_integer(double value) {
  using Wide =
      std::conditional_t<sizeof(T) == 4, T, std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>;
  constexpr double kLowest = -9223372036854775808.0;
  if (!(value > kLowest))
    return value <= kLowest && std::is_signed_v<Wide> ? static_cast<T>(std::numeric_limits<Wide>::min())
                                                      : T{0};
  if (value >= static_cast<double>(std::numeric_limits<Wide>::max()))
    return static_cast<T>(std::numeric_limits<Wide>::max());
  if (value < static_cast<double>(std::numeric_limits<Wide>::min())) {
    if constexpr (std::is_signed_v<Wide>)
      return static_cast<T>(std::numeric_limits<Wide>::min());
    else
      return static_cast<T>(static_cast<int64_t>(value));
  }
  return static_cast<T>(static_cast<Wide>(value));
}

// Calls f(TypeTag<T>{}) for bool (as uint8_t) and every numeric type.
template <typename F>
void visit_bool_or_numeric(ElementType type, F&& f) {
  if (type == ElementType::kBool) return f(TypeTag<uint8_t>{});
  visit_numeric(type, f);
}

// ---- one input ------------------------------------------------------------------------------------

// Older opsets carry an attribute that says what may be overwritten.
const void* unary_attrs(AttrContext& c);
// Output i has the shape of an input.
void set_output_like(InferContext& c, size_t output, ElementType type, size_t input);
void alias_unary(AliasContext& c);
Cost cost_elementwise(const NodeContext& c);
void infer_float_unary(InferContext& c);
void infer_numeric_unary(InferContext& c);
// Float types. The half types go through float.
void run_unary(const RunContext& c, const kernels::Unary& f);

// y[i] = f(x[i]); 16-bit types are widened and narrowed in blocks.
template <typename In, typename Out, typename F>
void map_chunk(const In* x, Out* y, int64_t count, F f) {
  if constexpr (kernels::kIsHalf<In> || kernels::kIsHalf<Out>) {
    constexpr int64_t kBlock = 512;
    ComputeType<In> wide_x[kBlock];
    ComputeType<Out> wide_y[kBlock];
    for (int64_t start = 0; start < count; start += kBlock) {
      const int64_t size = std::min(kBlock, count - start);
      if constexpr (kernels::kIsHalf<In>) {
        kernels::widen(x + start, wide_x, size);
      } else {
        std::copy_n(x + start, size, wide_x);
      }
      for (int64_t i = 0; i < size; ++i) wide_y[i] = static_cast<ComputeType<Out>>(f(wide_x[i]));
      if constexpr (kernels::kIsHalf<Out>) {
        kernels::narrow(wide_y, y + start, size);
      } else {
        std::copy_n(wide_y, size, y + start);
      }
    }
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<Out>(f(x[i]));
  }
}

template <typename In, typename Out, typename F>
void map_elements(const RunContext& c, F f) {
  const In* x = c.inputs[0].as<In>();
  Out* y = c.outputs[0].as<Out>();
  constexpr int64_t kChunk = 16384;
  const int64_t count = c.outputs[0].elements();
  kernels::parallel_for(count > 2 * kChunk ? c.threads : 1, (count + kChunk - 1) / kChunk,
                        [&](int64_t chunk) {
                          const int64_t start = chunk * kChunk;
                          map_chunk(x + start, y + start, std::min(kChunk, count - start), f);
                        });
}

template <kernels::UnaryKind kind>
void run_float_unary(const RunContext& c) {
  run_unary(c, {kind});
}
// A function of one float tensor without attributes.
template <kernels::UnaryKind kind>
constexpr OpDef float_unary(std::string_view name, void (*gradient)(GradientContext&) = nullptr) {
  return {.name = name,
          .attrs = unary_attrs,
          .infer = infer_float_unary,
          .alias = alias_unary,
          .run = run_float_unary<kind>,
          .cost = cost_elementwise,
          .layout = layout_unary,
          .region = region_broadcasting,
          .gradient = gradient};
}
// With attributes, which `attrs` turns into a kernels::Unary.
void run_attribute_unary(const RunContext& c);
constexpr OpDef float_unary(std::string_view name, const void* (*attrs)(AttrContext&),
                            void (*gradient)(GradientContext&) = nullptr) {
  return {.name = name,
          .attrs = attrs,
          .infer = infer_float_unary,
          .alias = alias_unary,
          .run = run_attribute_unary,
          .cost = cost_elementwise,
          .layout = layout_unary,
          .region = region_broadcasting,
          .gradient = gradient};
}

// ---- two inputs with broadcasting -----------------------------------------------------------------

// Before opset 7 the second input is placed by `axis`.
struct BinaryAttrs {
  int64_t axis = -1;  // -1: the last dimensions
};
const void* binary_attrs(AttrContext& c);
// Shape of inputs 0 and 1 broadcast together; both must be of the types given.
void infer_binary(InferContext& c, TypeSet types, ElementType output);
void infer_binary(InferContext& c, TypeSet first, TypeSet second);  // the output has the type of the first
void infer_binary(InferContext& c, TypeSet types);  // the output has the type of the inputs, which agree
// For gradients: an Error where the second input is placed by `axis`, as before opset 7.
void check_trailing_broadcast(const NodeContext& c);
// The output may take the place of an input of the same shape and width.
void alias_elementwise(AliasContext& c);

// Value propagation: f on the elements of the two inputs, where both are known; no values at all if f
// cannot tell one or the arithmetic overflows.
using DimFunction = std::function<std::optional<Dim>(Dim, Dim)>;
void propagate(InferContext& c, const DimFunction& f);
// The elements of an integer or bool input.
std::optional<std::span<const Dim>> known_values(InferContext& c, size_t i);
// False for a constant outside the range of an integer type.
bool fits(Dim value, ElementType type);
// -1 if it cannot be told whether they are equal.
int known_equal(Dim a, Dim b);

kernels::Broadcast broadcast_of(const RunContext& c);
// Any float type.
void run_float_binary(const RunContext& c, kernels::BinaryKind kind);

// An operand of a row in blocks of what it is computed in; a stride of 0 repeats its one element.
template <typename T>
class RowOperand {
 public:
  static constexpr int64_t kBlock = 512;
  RowOperand(const T* row, int64_t stride, int64_t count) : row_(row), stride_(stride) {
    if (stride == 0) std::fill_n(block_, std::min(kBlock, count), load_element(*row));
  }
  const ComputeType<T>* block(int64_t start, int64_t size) {
    if (stride_ == 0) return block_;
    if constexpr (kernels::kIsHalf<T>) {
      kernels::widen(row_ + start, block_, size);
      return block_;
    } else {
      (void)size;
      return row_ + start;
    }
  }

 private:
  const T* row_;
  int64_t stride_;
  ComputeType<T> block_[kBlock];
};

// Where a 16-bit type takes part. Columns are next to each other, or all the same one.
template <typename A, typename B, typename Y, typename F>
void half_row(const A* a, int64_t a_stride, const B* b, int64_t b_stride, Y* y, int64_t count, F f) {
  RowOperand<A> left(a, a_stride, count);
  RowOperand<B> right(b, b_stride, count);
  constexpr int64_t kBlock = RowOperand<A>::kBlock;
  ComputeType<Y> wide_y[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t size = std::min(kBlock, count - start);
    const ComputeType<A>* x1 = left.block(start, size);
    const ComputeType<B>* x2 = right.block(start, size);
    if constexpr (kernels::kIsHalf<Y>) {
      for (int64_t i = 0; i < size; ++i) wide_y[i] = static_cast<ComputeType<Y>>(f(x1[i], x2[i]));
      kernels::narrow(wide_y, y + start, size);
    } else {
      for (int64_t i = 0; i < size; ++i) y[start + i] = static_cast<Y>(f(x1[i], x2[i]));
    }
  }
}

// Columns as above. One loop for each way, so that all are of vectors.
template <typename A, typename B, typename Y, typename F>
void map_row(const A* a, int64_t a_stride, const B* b, int64_t b_stride, Y* y, int64_t count, F f) {
  if (a_stride != 0 && b_stride != 0) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<Y>(f(a[i], b[i]));
  } else if (a_stride != 0) {
    const B one = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<Y>(f(a[i], one));
  } else if (b_stride != 0) {
    const A one = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<Y>(f(one, b[i]));
  } else {
    std::fill_n(y, count, static_cast<Y>(f(*a, *b)));
  }
}

template <typename A, typename B, typename Y, typename F>
void broadcast_loop(const kernels::Broadcast& plan, int threads, const A* a, const B* b, Y* y, F f) {
  plan.for_each(threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const A* row_a = a + s.offset[0] + r * s.row_stride[0];
      const B* row_b = b + s.offset[1] + r * s.row_stride[1];
      Y* row_y = y + s.output + r * s.output_row;
      if constexpr (kernels::kIsHalf<A> || kernels::kIsHalf<B> || kernels::kIsHalf<Y>) {
        half_row(row_a, s.col_stride[0], row_b, s.col_stride[1], row_y, s.cols, f);
      } else {
        map_row(row_a, s.col_stride[0], row_b, s.col_stride[1], row_y, s.cols, f);
      }
    }
  });
}

template <typename T, typename Y, typename F>
void run_binary(const RunContext& c, F f) {
  broadcast_loop(broadcast_of(c), c.threads, c.inputs[0].as<T>(), c.inputs[1].as<T>(), c.outputs[0].as<Y>(),
                 f);
}

// Throws if input 1, of integers, holds a 0 that something is divided by.
template <typename T>
void expect_divisors(const RunContext& c) {
  const T* divisors = c.inputs[1].as<T>();
  const int64_t count = c.outputs[0].elements() == 0 ? 0 : c.inputs[1].elements();
  const int64_t at = std::find(divisors, divisors + count, T{0}) - divisors;
  if (at != count)
    fail(ErrorCode::kInvalidArgument, "{}: element {} of the divisor is 0, and integers have no infinity",
         c.node->label(), at);
}

// A comparison: f(a, b) -> bool for every numeric type.
template <typename F>
void run_comparison(const RunContext& c, F f) {
  visit_bool_or_numeric(c.inputs[0].type,
                        [&](auto tag) { run_binary<typename decltype(tag)::type, uint8_t>(c, f); });
}
void infer_comparison(InferContext& c);  // Greater, Less and their kin
void infer_logical(InferContext& c);     // And, Or, Xor

}  // namespace plimsoll
