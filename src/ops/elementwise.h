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

template <typename In, typename Out, typename F>
void map_elements(const RunContext& c, F f) {
  const In* x = c.inputs[0].as<In>();
  Out* y = c.outputs[0].as<Out>();
  constexpr int64_t kChunk = 16384;
  const int64_t count = c.outputs[0].elements();
  kernels::parallel_for(count > 2 * kChunk ? c.threads : 1, (count + kChunk - 1) / kChunk,
                        [&](int64_t chunk) {
                          const int64_t end = std::min(count, (chunk + 1) * kChunk);
                          for (int64_t i = chunk * kChunk; i < end; ++i)
                            y[i] = static_cast<Out>(f(load_element(x[i])));
                        });
}

template <kernels::UnaryKind kind>
void run_float_unary(const RunContext& c) {
  run_unary(c, {kind});
}
// A function of one float tensor without attributes.
template <kernels::UnaryKind kind>
constexpr OpDef float_unary(std::string_view name) {
  return {.name = name,
          .attrs = unary_attrs,
          .infer = infer_float_unary,
          .alias = alias_unary,
          .run = run_float_unary<kind>,
          .cost = cost_elementwise,
          .layout = layout_unary,
          .region = region_broadcasting};
}
// With attributes, which `attrs` turns into a kernels::Unary.
void run_attribute_unary(const RunContext& c);
constexpr OpDef float_unary(std::string_view name, const void* (*attrs)(AttrContext&)) {
  return {.name = name,
          .attrs = attrs,
          .infer = infer_float_unary,
          .alias = alias_unary,
          .run = run_attribute_unary,
          .cost = cost_elementwise,
          .layout = layout_unary,
          .region = region_broadcasting};
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

// A row of 16-bit operands, widened in blocks; a stride of 0 repeats an operand.
template <typename Half, typename Y, typename F>
void half_row(const Half* a, int64_t a_stride, const Half* b, int64_t b_stride, Y* y, int64_t count, F f) {
  constexpr int64_t kBlock = 512;
  float wide_a[kBlock], wide_b[kBlock];
  std::fill(wide_a, wide_a + kBlock, load_element(*a));
  std::fill(wide_b, wide_b + kBlock, load_element(*b));
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t size = std::min(kBlock, count - start);
    if (a_stride != 0) kernels::widen(a + start, wide_a, size);
    if (b_stride != 0) kernels::widen(b + start, wide_b, size);
    for (int64_t i = 0; i < size; ++i) y[start + i] = static_cast<Y>(f(wide_a[i], wide_b[i]));
  }
}

template <typename A, typename B, typename Y, typename F>
void broadcast_loop(const kernels::Broadcast& plan, int threads, const A* a, const B* b, Y* y, F f) {
  plan.for_each(threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const A* row_a = a + s.offset[0] + r * s.row_stride[0];
      const B* row_b = b + s.offset[1] + r * s.row_stride[1];
      Y* row_y = y + s.output + r * s.output_row;
      if constexpr (kernels::kIsHalf<A> && std::is_same_v<A, B> && !kernels::kIsHalf<Y>) {
        half_row(row_a, s.col_stride[0], row_b, s.col_stride[1], row_y, s.cols, f);
      } else {
        for (int64_t i = 0; i < s.cols; ++i)
          row_y[i] = static_cast<Y>(
              f(load_element(row_a[i * s.col_stride[0]]), load_element(row_b[i * s.col_stride[1]])));
      }
    }
  });
}

template <typename T, typename Y, typename F>
void run_binary(const RunContext& c, F f) {
  broadcast_loop(broadcast_of(c), c.threads, c.inputs[0].as<T>(), c.inputs[1].as<T>(), c.outputs[0].as<Y>(),
                 f);
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
