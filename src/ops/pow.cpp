#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/unary.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_binary(c, kNumericTypes, kNumericTypes);
}

// x^0.5, but that pow knows no negative zero and an infinity of one sign only.
template <typename T>
T root(T x) {
  return x == -std::numeric_limits<T>::infinity() ? -x : std::sqrt(x + T{0});
}

// One exponent for all: the ones that models use need no pow.
template <typename T>
bool run_simple_exponent(const RunContext& c) {
  if (c.inputs[1].elements() != 1) return false;
  const T exponent = *c.inputs[1].as<T>();
  if (exponent == 2) return map_elements<T, T>(c, [](T x) { return x * x; }), true;
  if (exponent == 3) return map_elements<T, T>(c, [](T x) { return x * x * x; }), true;
  if (exponent == 1) return map_elements<T, T>(c, [](T x) { return x; }), true;
  if (exponent == T{0.5}) return map_elements<T, T>(c, [](T x) { return root(x); }), true;
  if (exponent == T{-0.5}) return map_elements<T, T>(c, [](T x) { return T{1} / root(x); }), true;
  if (exponent == T{0.75}) {
    return map_elements<T, T>(c,
                              [](T x) {
                                const T y = root(x);
                                return y * std::sqrt(y);
                              }),
           true;
  }
  if (exponent == -1) return run_unary(c, {kernels::UnaryKind::kReciprocal}), true;
  return false;
}

bool run_simple_exponent(const RunContext& c) {
  if (c.inputs[0].type != c.inputs[1].type) return false;
  if (c.inputs[0].type == ElementType::kFloat) return run_simple_exponent<float>(c);
  return c.inputs[0].type == ElementType::kDouble && run_simple_exponent<double>(c);
}

template <typename T>
T integer_power(T base, uint64_t exponent) {
  WrapType<T> result = 1;
  WrapType<T> square = static_cast<WrapType<T>>(base);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// Integers to integers stay exact; negative exponents truncate, 0 to a negative one is 0.
template <typename T, typename E>
T power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    if (exponent >= 0) return integer_power(base, static_cast<uint64_t>(exponent));
    if (base == 1) return 1;
    if constexpr (std::is_signed_v<T>) {
      if (base == -1) return static_cast<uint64_t>(exponent) % 2 == 0 ? T{1} : T{-1};
    }
    return 0;
  } else if constexpr (std::is_integral_v<T>) {
    return cast_to_integer<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  } else {
    return std::pow(base, static_cast<T>(exponent));
  }
}

// Exponents by their own type, one by one: pow costs more than the switch.
int64_t read_integer(const TensorView& view, int64_t i) {
  return visit_integer(
      view.type, [&](auto tag) { return static_cast<int64_t>(view.as<typename decltype(tag)::type>()[i]); });
}

double read_real(const TensorView& view, int64_t i) {
  if (is_integer(view.type)) return static_cast<double>(read_integer(view, i));
  return visit_float(view.type, [&](auto tag) {
    return static_cast<double>(load_element(view.as<typename decltype(tag)::type>()[i]));
  });
}

template <typename T, typename Read>
void power_loop(const RunContext& c, Read read) {
  broadcast_of(c).for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const T* base = c.inputs[0].as<T>() + s.offset[0] + r * s.row_stride[0];
      const int64_t exponent = s.offset[1] + r * s.row_stride[1];
      T* y = c.outputs[0].as<T>() + s.output + r * s.output_row;
      for (int64_t i = 0; i < s.cols; ++i)
        y[i] = static_cast<T>(power(load_element(base[i * s.col_stride[0]]),
                                    read(c.inputs[1], exponent + i * s.col_stride[1])));
    }
  });
}

// One row of elements, `stride` 0 or 1 apart, as floats.
void widen_row(const TensorView& view, int64_t start, int64_t stride, int64_t count, float* to) {
  read_floats(view, start, stride == 0 ? 1 : count, to);
  if (stride == 0) std::fill_n(to + 1, count - 1, to[0]);
}

// With exponents of another float type than the base: row by row through the kernel.
void widened_power(const RunContext& c) {
  constexpr int64_t kRow = 512;
  broadcast_of(c).for_each(c.threads, [&](const kernels::BroadcastBlock& s) {
    float base[kRow], exponent[kRow];
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t i = 0; i < s.cols; i += kRow) {
        const int64_t count = std::min(kRow, s.cols - i);
        widen_row(c.inputs[0], s.offset[0] + r * s.row_stride[0] + i * s.col_stride[0], s.col_stride[0],
                  count, base);
        widen_row(c.inputs[1], s.offset[1] + r * s.row_stride[1] + i * s.col_stride[1], s.col_stride[1],
                  count, exponent);
        const kernels::BroadcastBlock row{1, count, 0, 0, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}};
        kernels::binary(kernels::BinaryKind::kPow, row, base, exponent, base);
        write_floats(c.outputs[0], s.output + r * s.output_row + i, count, base);
      }
    }
  });
}

void run(const RunContext& c) {
  if (run_simple_exponent(c)) return;
  if (is_float(c.inputs[0].type) && c.inputs[0].type == c.inputs[1].type)
    return run_float_binary(c, kernels::BinaryKind::kPow);
  const bool wide = c.inputs[0].type == ElementType::kDouble || c.inputs[1].type == ElementType::kDouble;
  if (is_float(c.inputs[0].type) && is_float(c.inputs[1].type) && !wide) return widened_power(c);
  const bool exact = is_integer(c.inputs[0].type) && is_integer(c.inputs[1].type);
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (exact) return power_loop<T>(c, read_integer);
    power_loop<T>(c, read_real);
  });
}

// One number for all, where it is a constant.
std::optional<double> known_exponent(const GradientContext& c) {
  const TensorView* data = c.constant(1);
  if (data == nullptr || data->elements() != 1) return std::nullopt;
  return visit_numeric(data->type, [&](auto tag) {
    typename decltype(tag)::type value;
    std::memcpy(static_cast<void*>(&value), data->data, sizeof(value));
    return static_cast<double>(load_element(value));
  });
}

void gradient(GradientContext& c) {
  check_trailing_broadcast(c);
  const Term x = in(c), e = in(c, 1).cast(c.type(0));
  if (c.wants(0)) {
    const auto known = known_exponent(c);
    // 0 to the power of -1 would meet a factor of 0.
    const Term slope =
        known == 2.0 ? x * 2.0
        : known      ? x.binary("Pow", x.number(*known - 1)) * *known
                     : (e.binary("Equal", e.number(0))).choose(e.number(0), e * x.binary("Pow", e - 1.0));
    c.set_broadcast(0, (dy(c) * slope).edge());
  }
  if (c.wants(1)) {
    const Term is_zero = x.binary("Equal", x.number(0));
    const Term log = is_zero.choose(x.number(0), is_zero.choose(x.number(1), x).unary("Log"));
    c.set_broadcast(1, (dy(c) * out(c) * log).cast(c.type(1)).edge());
  }
}

}  // namespace

extern const OpDef op_pow = {
    .name = "Pow",
    .inputs = {2, 2},
    .attrs = binary_attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
