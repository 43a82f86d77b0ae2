#include <cmath>
#include <cstring>
#include <type_traits>

#include "graph/gradient.h"
#include "ops/movement.h"
#include "tensor/half_bits.h"

namespace plimsoll {
namespace {

constexpr TypeSet kRangeTypes =
    types(ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBFloat16,
          ElementType::kInt16, ElementType::kInt32, ElementType::kInt64);

template <typename T>
T scalar(const TensorView& view) {
  T value;
  std::memcpy(&value, view.data, sizeof(T));
  return value;
}

// max(ceil((limit - start) / delta), 0)
template <typename T>
int64_t count_steps(const NodeContext& c, T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    if (delta == 0) c.reject("delta is 0");
    if (limit == start || (limit > start) != (delta > 0)) return 0;
    // Distances of 64-bit numbers need all 64 bits.
    auto distance = [](int64_t from, int64_t to) {
      return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    };
    const uint64_t span = delta > 0 ? distance(start, limit) : distance(limit, start);
    const uint64_t step = delta > 0 ? distance(0, delta) : distance(delta, 0);
    const uint64_t count = span / step + (span % step != 0 ? 1 : 0);
    if (count > INT64_MAX) c.reject("from {} to {} by {} are too many steps", start, limit, delta);
    return static_cast<int64_t>(count);
  } else {
    // The difference is taken in the type itself, the quotient in double.
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const double span = static_cast<Wide>(limit) - static_cast<Wide>(start);
    const double count = std::ceil(span / static_cast<double>(static_cast<Wide>(delta)));
    if (!(count < 9e18)) c.reject("a span of {} is no finite number of steps of delta", span);
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
}

template <typename F>
void visit(ElementType type, F&& f) {
  is_float(type) ? visit_float(type, f) : visit_integer(type, f);
}

void infer(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    c.expect_type(i, kRangeTypes);
    c.expect_same_type(0, i);
    if (!c.ranked(i)) continue;
    const Dim count = product(c.dims(i));
    if (count.is_constant() && count.value() != 1)
      c.reject("input {}: expected a scalar, found {}", i, to_string(c.dims(i)));
  }
  if (c.constant(0) && c.constant(1) && c.constant(2)) {
    visit(c.type(0), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T start = scalar<T>(*c.constant(0)), limit = scalar<T>(*c.constant(1)),
              delta = scalar<T>(*c.constant(2));
      const int64_t count = count_steps<T>(c, start, limit, delta);
      c.set_output(0, c.type(0), {Dim(count)});
      if constexpr (std::is_integral_v<T>) {
        if (count > static_cast<int64_t>(InferContext::kMaxKnownValues)) return;
        std::vector<Dim> values;
        // Every value lies between start and limit, the multiple of delta perhaps not: it may wrap.
        for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i)
          values.push_back(
              static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta)));
        c.set_values(0, values);
      }
    });
    return;
  }
  const auto start = c.values(0), limit = c.values(1), delta = c.values(2);
  if (!start || !limit || !delta) return c.set_output(0, c.type(0), {c.unknown("")});
  const Dim by = (*delta)[0];
  if (by == Dim(0)) c.reject("delta is 0");
  if (!by.is_constant()) return c.set_output(0, c.type(0), {c.unknown("")});
  const Dim span = (*limit)[0] - (*start)[0];
  const Dim count = max(by.value() > 0 ? ceil_div(span, by) : ceil_div(Dim(0) - span, Dim(-1) * by), Dim(0));
  c.set_output(0, c.type(0), {count});
  if (!count.is_constant() || count.value() > static_cast<int64_t>(InferContext::kMaxKnownValues)) return;
  std::vector<Dim> values;
  for (int64_t i = 0; i < count.value(); ++i) values.push_back((*start)[0] + Dim(i) * by);
  c.set_values(0, values);
}

template <typename T>
void fill_steps(T* out, int64_t count, T start, T delta) {
  if constexpr (std::is_integral_v<T>) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
  } else {
    const auto first = load_inline(start), step = load_inline(delta);
    using Wide = std::remove_const_t<decltype(first)>;
    for (int64_t i = 0; i < count; ++i) {
      const Wide value = first + static_cast<Wide>(i) * step;
      if constexpr (std::is_same_v<T, Wide>) {
        out[i] = value;
      } else {
        out[i] = store_inline<T>(value);
      }
    }
  }
}

void run(const RunContext& c) {
  visit(c.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_steps<T>(c.outputs[0].as<T>(), c.outputs[0].elements(), scalar<T>(c.inputs[0]),
                  scalar<T>(c.inputs[2]));
  });
}

// Element i is start + i * delta; how many there are does not change with small steps of limit.
void gradient(GradientContext& c) {
  const auto sum = [&](Edge* edge, size_t input) {
    edge = c.op("ReduceSum", {edge}, c.attributes().set("keepdims", int64_t{0}));
    return c.rank(input) == 0 ? edge : c.op("Reshape", {edge, c.shape_of(c.in(input))});
  };
  c.set(0, sum(c.gradient(), 0));
  if (!c.wants(2)) return;
  Edge* numbers =
      c.op("Range", {c.build.scalar(int64_t{0}), c.op("Size", {c.gradient()}), c.build.scalar(int64_t{1})});
  c.set(2, sum(c.op("Mul", {c.gradient(), c.op("CastLike", {numbers, c.gradient()})}), 2));
}

}  // namespace

extern const OpDef op_range = {
    .name = "Range",
    .inputs = {3, 3},
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
