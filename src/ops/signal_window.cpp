#include "ops/signal_window.h"

#include <cmath>
#include <numbers>

#include "ops/float_blocks.h"
#include "ops/fourier.h"

namespace plimsoll {
namespace {

struct SignalWindowAttrs {
  ElementType type = ElementType::kFloat;
  bool periodic = true;
};

}  // namespace

ElementType read_output_type(AttrContext& c) {
  const int64_t type = c.integer("output_datatype", 1);
  if (type < 0 || type > 31 || !kNumericTypes.contains(static_cast<ElementType>(type)))
    c.reject("attribute 'output_datatype': expected a numeric type, found {}", type);
  return static_cast<ElementType>(type);
}

void write_number(const TensorView& y, int64_t i, double value) {
  visit_numeric(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      y.as<T>()[i] = cast_to_integer<T>(value);
    } else {
      y.as<T>()[i] = narrowed<T>(value);
    }
  });
}

const void* window_attrs(AttrContext& c) {
  auto* a = c.make<SignalWindowAttrs>();
  a->type = read_output_type(c);
  a->periodic = c.integer("periodic", 1) != 0;
  return a;
}

void infer_window(InferContext& c) {
  expect_scalar(c, 0, kIndexTypes);
  const auto size = known_scalar(c, 0);
  if (size && size->is_constant() && size->value() < 0)
    c.reject("size: expected at least 0, found {}", size->value());
  c.set_output(0, c.attrs<SignalWindowAttrs>().type, std::vector<Dim>{size ? *size : c.unknown("window")});
}

void run_window(const RunContext& c, double a, double b, double d) {
  const int64_t size = c.outputs[0].elements();
  const double n = static_cast<double>(c.attrs<SignalWindowAttrs>().periodic ? size : size - 1);
  for (int64_t i = 0; i < size; ++i) {
    // A symmetric window of one point is its middle.
    const double angle = n == 0 ? std::numbers::pi : 2 * std::numbers::pi * static_cast<double>(i) / n;
    // In this order Blackman's middle, 0.42 + 0.08 + 0.5, is 1 also where it becomes an integer.
    write_number(c.outputs[0], i, a + d * std::cos(2 * angle) - b * std::cos(angle));
  }
}

}  // namespace plimsoll
