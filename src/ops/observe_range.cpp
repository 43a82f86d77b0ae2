// What calibration asks of a value: the least and the largest element, and the least distance from zero.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/op_def.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  const Dim length[] = {Dim(3)};
  c.set_output(0, ElementType::kFloat, length);
}

// A NaN makes all three NaN; of no elements the least is above the largest.
void run(const RunContext& c) {
  const int64_t count = c.inputs[0].elements();
  float low = std::numeric_limits<float>::infinity(), high = -low, near = low;
  bool has_nan = false;
  visit_float(c.inputs[0].type, [&](auto tag) {
    const auto* x = c.inputs[0].as<typename decltype(tag)::type>();
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(x[i]);
      low = std::min(low, value);
      high = std::max(high, value);
      near = std::min(near, std::fabs(value));
      has_nan |= value != value;
    }
  });
  if (has_nan) low = high = near = std::numeric_limits<float>::quiet_NaN();
  float* y = c.outputs[0].as<float>();
  y[0] = low, y[1] = high, y[2] = near;
}

}  // namespace

extern const OpDef op_observe_range = {
    .domain = kPlimsollDomain,
    .name = "ObserveRange",
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
