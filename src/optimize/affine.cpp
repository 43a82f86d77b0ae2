#include "optimize/affine.h"

#include <algorithm>
#include <cmath>

#include "optimize/match.h"

namespace plimsoll {
namespace {

float at(const std::vector<float>& v, size_t i) {
  return v.size() == 1 ? v[0] : v[i];
}

template <typename F>
std::vector<float> zip(const std::vector<float>& a, const std::vector<float>& b, F&& f) {
  std::vector<float> result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = f(at(a, i), at(b, i));
  return result;
}

std::optional<Affine> batch_normalization(const Node& node, int64_t channels) {
  if (attribute_or(node, "training_mode", int64_t{0}) != 0 || attribute_or(node, "spatial", int64_t{1}) != 1)
    return std::nullopt;
  if (node.opset < 7 && attribute_or(node, "is_test", int64_t{0}) == 0) return std::nullopt;
  std::vector<std::vector<float>> inputs;
  for (size_t i = 1; i < 5; ++i) {
    auto values = floats(node.input(i));
    if (!values || static_cast<int64_t>(values->size()) != channels) return std::nullopt;
    inputs.push_back(std::move(*values));
  }
  const double epsilon = attribute_or(node, "epsilon", 1e-5f);
  Affine affine;
  for (size_t c = 0; c < inputs[0].size(); ++c) {
    const double scale = inputs[0][c] / std::sqrt(inputs[3][c] + epsilon);
    affine.scale.push_back(static_cast<float>(scale));
    affine.shift.push_back(static_cast<float>(inputs[1][c] - inputs[2][c] * scale));
  }
  return affine;
}

}  // namespace

Affine Affine::then(const Affine& next) const {
  Affine result;
  result.scale = zip(scale, next.scale, [](float a, float b) { return a * b; });
  result.shift = zip(zip(shift, next.scale, [](float a, float b) { return a * b; }), next.shift,
                     [](float a, float b) { return a + b; });
  return result;
}

bool Affine::scales() const {
  return std::any_of(scale.begin(), scale.end(), [](float s) { return s != 1.0f; });
}

std::optional<Affine> affine_of(const Node& node, const Edge& x, int64_t rank, int64_t channels) {
  if (!node.domain.empty()) return std::nullopt;
  const std::string_view op = node.op_type;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != nullptr) return std::nullopt;
  }
  if (op == "BatchNormalization") {
    if (node.input(0) != &x || rank < 2) return std::nullopt;
    return batch_normalization(node, channels);
  }
  if (op != "Mul" && op != "Add" && op != "Sub" && op != "Div") return std::nullopt;
  if (node.opset < 7) return std::nullopt;  // broadcasting by attribute
  const bool left = node.input(0) == &x;
  auto values = per_channel(other_input(node, &x), rank, channels);
  if (!values || values->empty()) return std::nullopt;
  if (op == "Mul") return Affine{*values, {0.0f}};
  if (op == "Add") return Affine{{1.0f}, *values};
  if (op == "Sub") {
    if (!left) return Affine{{-1.0f}, *values};
    for (float& v : *values) v = -v;
    return Affine{{1.0f}, *values};
  }
  if (!left) return std::nullopt;
  for (float& v : *values) v = 1.0f / v;
  return Affine{*values, {0.0f}};
}

}  // namespace plimsoll
