#include "optimize/activations.h"

#include <limits>

#include "optimize/match.h"

namespace plimsoll {
namespace {

std::optional<float> bound(const Node& clip, size_t input, std::string_view attribute, float fallback) {
  if (clip.opset < 11) return attribute_or(clip, attribute, fallback);
  if (clip.input(input) == nullptr) return fallback;
  const auto values = floats(clip.input(input));
  if (!values || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

}  // namespace

std::optional<std::pair<float, float>> clip_bounds(const Node& clip) {
  const auto low = bound(clip, 1, "min", std::numeric_limits<float>::lowest());
  const auto high = bound(clip, 2, "max", std::numeric_limits<float>::max());
  if (!low || !high) return std::nullopt;
  return std::pair(*low, *high);
}

std::optional<ActivationForm> activation_of(const Node& node) {
  if (node.inputs.empty() || !is_real(node.inputs[0])) return std::nullopt;
  const std::string_view op = node.op_type;
  if (node.domain == kPlimsollDomain)
    return op == "Silu" ? std::optional(ActivationForm{"Silu", {}}) : std::nullopt;
  if (!node.domain.empty()) return std::nullopt;
  if (op == "Relu" || op == "Sigmoid" || op == "Tanh" || op == "HardSwish") return ActivationForm{op, {}};
  if (op == "LeakyRelu") return ActivationForm{op, {attribute_or(node, "alpha", 0.01f)}};
  if (op == "HardSigmoid")
    return ActivationForm{op, {attribute_or(node, "alpha", 0.2f), attribute_or(node, "beta", 0.5f)}};
  if (op == "Gelu") {
    const Attribute* approximate = node.attribute("approximate");
    if (approximate != nullptr && approximate->s != "none") return std::nullopt;
    return ActivationForm{op, {}};
  }
  if (op == "Clip") {
    const auto bounds = clip_bounds(node);
    if (bounds) return ActivationForm{op, {bounds->first, bounds->second}};
  }
  return std::nullopt;
}

void set_activation(AttributeList& attributes, const ActivationForm& form) {
  attributes.set("activation", form.name);
  if (!form.params.empty()) attributes.set("activation_params", std::span<const float>(form.params));
}

bool has_activation(const Node& node) {
  return node.attribute("activation") != nullptr;
}

}  // namespace plimsoll
