#include "ops/update_common.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace plimsoll {

void infer_update(InferContext& c) {
  c.expect_type(kParameter, kUpdateTypes);
  c.expect_same_type(kParameter, kGradientOf);
  c.expect_type(kRate, types(ElementType::kFloat));
  c.expect_type(kStep, types(ElementType::kInt64));
  for (size_t i : {kScale, kGuard}) {
    if (c.has_input(i)) c.expect_type(i, types(ElementType::kFloat));
  }
  if (c.ranked(kGradientOf) && !std::ranges::equal(c.dims(kParameter), c.dims(kGradientOf)))
    c.reject("its gradient has shape {}, it has {}", to_string(c.input(kGradientOf).type),
             to_string(c.input(kParameter).type));
  c.set_output(0, c.type(kParameter), c.dims(kParameter));
  for (size_t i = kFirstState; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    c.expect_same_type(kParameter, i);
    if (c.has_output(1 + i - kFirstState)) c.set_output(1 + i - kFirstState, c.type(i), c.dims(i));
  }
}

void alias_update(AliasContext& c) {
  c.overwrite(kParameter, 0);
  for (size_t i = kFirstState; i < c.input_count(); ++i) {
    if (c.has_input(i) && c.has_output(1 + i - kFirstState)) c.overwrite(i, 1 + i - kFirstState);
  }
}

kernels::GradientChange gradient_change(const RunContext& c, double clip, double decay) {
  const double scale = c.has_input(kScale) ? static_cast<double>(*c.inputs[kScale].as<float>()) : 1;
  return {scale, clip, decay};
}

double update_rate(const RunContext& c) {
  return static_cast<double>(*c.inputs[kRate].as<float>());
}
double update_step(const RunContext& c) {
  return static_cast<double>(*c.inputs[kStep].as<int64_t>());
}

double decimal(float attribute) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", static_cast<double>(attribute));
  const double value = std::strtod(text, nullptr);
  return static_cast<float>(value) == attribute ? value : static_cast<double>(attribute);
}

bool begin_update(const RunContext& c) {
  const auto take_over = [&](size_t input, size_t output) {
    const TensorView &from = c.inputs[input], &to = c.outputs[output];
    if (from.data != to.data && to.bytes() > 0)
      std::memcpy(to.data, from.data, static_cast<size_t>(to.bytes()));
  };
  take_over(kParameter, 0);
  for (size_t i = kFirstState; i < c.inputs.size(); ++i) {
    if (c.has_output(1 + i - kFirstState)) take_over(i, 1 + i - kFirstState);
  }
  const auto finite = [&](size_t i) { return !c.has_input(i) || std::isfinite(*c.inputs[i].as<float>()); };
  return finite(kGuard) && finite(kScale) && finite(kRate);
}

}  // namespace plimsoll
