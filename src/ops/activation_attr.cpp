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
  return read_activation(c, "activation", "activation_params");
}

kernels::Activation read_activation(AttrContext& c, std::string_view attribute,
                                    std::string_view params_attribute) {
  const std::string_view name = c.text(attribute, "");
  const std::span<const float> parameters = c.reals(params_attribute);
  for (const NamedActivation& known : kActivations) {
    if (known.name != name) continue;
    if (parameters.size() != known.parameters)
      c.reject("attribute '{}': {} takes {}, found {}", params_attribute, name, known.parameters,
               parameters.size());
    kernels::Activation activation{known.kind};
    if (parameters.size() > 0) activation.a = parameters[0];
    if (parameters.size() > 1) activation.b = parameters[1];
    return activation;
  }
  c.reject("attribute '{}': '{}' is unknown", attribute, name);
}

namespace {

template <typename T>
T apply(kernels::Activation f, T x) {
  const T a = f.a, b = f.b;
  const auto clip = [](T value, T low, T high) {
    const T raised = value < low ? low : value;
    return raised > high ? high : raised;
  };
  switch (f.kind) {
    case Kind::kNone:
      return x;
    case Kind::kRelu:
      return x < 0 ? 0 : x;
    case Kind::kLeakyRelu:
      return x < 0 ? a * x : x;
    case Kind::kClip:
      return clip(x, a, b);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kSilu:
      return x / (1 + std::exp(-x));
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kGelu:
      return T{0.5} * x * (1 + std::erf(x * static_cast<T>(0.70710678118654752440)));
    case Kind::kHardSigmoid:
      return clip(a * x + b, 0, 1);
    case Kind::kHardSwish:
      return x * clip(x / 6 + T{0.5}, 0, 1);
  }
  return x;
}

}  // namespace

float apply_activation(kernels::Activation f, float x) {
  return apply(f, x);
}
double apply_activation(kernels::Activation f, double x) {
  return apply(f, x);
}

}  // namespace plimsoll
