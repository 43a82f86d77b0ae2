#include "ops/update_common.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ops/elementwise.h"
#include "ops/training_common.h"

namespace plimsoll {
namespace {

// run reads and writes as many elements of the gradient and of the states as the parameter has.
void expect_like_parameter(const InferContext& c, size_t i) {
  c.expect_type(i, kUpdateTypes);
  c.expect_same_type(kParameter, i);
  if (!c.ranked(i) || !c.ranked(kParameter)) return;
  const auto may_be_equal = [](Dim a, Dim b) { return a == b || !a.is_constant() || !b.is_constant(); };
  if (!std::ranges::equal(c.dims(kParameter), c.dims(i), may_be_equal))
    c.reject("input {}: expected the parameter's shape {}, found {}", i, to_string(c.dims(kParameter)),
             to_string(c.dims(i)));
}

}  // namespace

void infer_update(InferContext& c) {
  c.expect_type(kParameter, kUpdateTypes);
  expect_like_parameter(c, kGradientOf);
  c.expect_type(kStep, types(ElementType::kInt64));
  expect_one(c, kStep);
  for (size_t i : {kRate, kScale, kGuard}) {
    if (i != kRate && !c.has_input(i)) continue;
    c.expect_type(i, types(ElementType::kFloat));
    expect_one(c, i);
  }
  if (!c.has_output(0)) c.reject("output 0 is missing");
  set_output_like(c, 0, c.type(kParameter), kParameter);
  const size_t states = std::max(c.input_count() - kFirstState, c.output_count() - 1);
  for (size_t s = 0; s < states; ++s) {
    const size_t input = kFirstState + s, output = 1 + s;
    if (c.has_input(input) != c.has_output(output))
      c.reject("input {} is the old state and output {} the new one: one of them is missing", input, output);
    if (!c.has_input(input)) continue;
    expect_like_parameter(c, input);
    set_output_like(c, output, c.type(input), input);
  }
}

void expect_state_for_momentum(const AttrContext& c, float momentum, size_t state) {
  const std::span<Edge* const> inputs = c.node().inputs;
  if (momentum != 0 && (inputs.size() <= state || inputs[state] == nullptr))
    c.reject("attribute 'momentum' is {}, but input {}, which would keep it, is missing", momentum, state);
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
