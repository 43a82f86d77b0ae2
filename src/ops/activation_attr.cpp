#include "ops/activation_attr.h"

#include <algorithm>
#include <cmath>

namespace plimsoll {
namespace {

using Kind = kernels::ActivationKind;

struct NamedActivation {
  std::string_view name;
  Kind kind;
  size_t parameters;
};
constexpr NamedActivation kActivations[] = {
    {"", Kind::kNone, 0},
    {"Relu", Kind::kRelu, 0},
    {"LeakyRelu", Kind::kLeakyRelu, 1},
    {"Clip", Kind::kClip, 2},
    {"Sigmoid", Kind::kSigmoid, 0},
    {"Silu", Kind::kSilu, 0},
    {"Tanh", Kind::kTanh, 0},
    {"Gelu", Kind::kGelu, 0},
    {"HardSigmoid", Kind::kHardSigmoid, 2},
    {"HardSwish", Kind::kHardSwish, 0},
};

}  // namespace

kernels::Activation read_activation(AttrContext& c) {
  const std::string_view name = c.text("activation", "");
  const std::span<const float> parameters = c.reals("activation_params");
  for (const NamedActivation& known : kActivations) {
    if (known.name != name) continue;
    if (parameters.size() != known.parameters)
      c.reject("attribute 'activation_params': {} takes {}, found {}", name, known.parameters,
               parameters.size());
    kernels::Activation activation{known.kind};
    if (parameters.size() > 0) activation.a = parameters[0];
    if (parameters.size() > 1) activation.b = parameters[1];
    return activation;
  }
  c.reject("attribute 'activation': '{}' is unknown", name);
}

float apply_activation(kernels::Activation f, float x) {
  const auto clip = [](float value, float low, float high) {
    const float raised = value < low ? low : value;
    return raised > high ? high : raised;
  };
  switch (f.kind) {
    case Kind::kNone:
      return x;
    case Kind::kRelu:
      return x < 0 ? 0 : x;
    case Kind::kLeakyRelu:
      return x < 0 ? f.a * x : x;
    case Kind::kClip:
      return clip(x, f.a, f.b);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kSilu:
      return x / (1 + std::exp(-x));
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kGelu:
      return 0.5f * x * (1 + std::erf(x * 0.70710678f));
    case Kind::kHardSigmoid:
      return clip(f.a * x + f.b, 0, 1);
    case Kind::kHardSwish:
      return x * clip(x / 6 + 0.5f, 0, 1);
  }
  return x;
}

}  // namespace plimsoll
