#include "runtime/declared_shapes.h"

#include <algorithm>
#include <map>

namespace plimsoll {

DeclaredShapes::DeclaredShapes(const std::vector<ValueInfo>& inputs) {
  std::map<std::string, Place> first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind != ValueKind::kTensor || !inputs[i].ranked) continue;
    if (inputs[i].dims.empty()) scalars_.push_back({i, inputs[i].name});
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      if (inputs[i].symbols[d].empty()) continue;
      const auto [known, is_new] = first.try_emplace(inputs[i].symbols[d], Place{i, d});
      if (!is_new) same_.emplace_back(Place{i, d}, known->second);
    }
  }
}

LoadOptions::Loose DeclaredShapes::contradicted(const ShapeOf& shape_of) const {
  LoadOptions::Loose result;
  for (const Scalar& scalar : scalars_) {
    const std::vector<int64_t>* shape = shape_of(scalar.input);
    if (shape != nullptr && !shape->empty()) result.scalars.push_back(scalar.name);
  }
  // A negative size: none, which is told elsewhere.
  const auto size_at = [&](Place place) -> int64_t {
    const std::vector<int64_t>* shape = shape_of(place.input);
    return shape != nullptr && place.dim < shape->size() ? (*shape)[place.dim] : -1;
  };
  result.names = std::any_of(same_.begin(), same_.end(), [&](const auto& pair) {
    const int64_t a = size_at(pair.first), b = size_at(pair.second);
    return a >= 0 && b >= 0 && a != b;
  });
  return result;
}

DeclaredShapes::ShapeOf shapes_by_name(const std::vector<ValueInfo>& inputs, const Shapes& shapes) {
  return [&](size_t input) {
    const auto found = shapes.find(inputs[input].name);
    return found == shapes.end() ? nullptr : &found->second;
  };
}

LoadOptions::Loose joined(LoadOptions::Loose a, const LoadOptions::Loose& b) {
  a.names |= b.names;
  for (const std::string& name : b.scalars) {
    if (std::find(a.scalars.begin(), a.scalars.end(), name) == a.scalars.end()) a.scalars.push_back(name);
  }
  return a;
}

std::string describe(const LoadOptions::Loose& loose) {
  std::string text = "shapes that a run gave contradict the model's: it was prepared for them";
  if (loose.names) text += ", dimensions of one name as different ones";
  for (const std::string& name : loose.scalars) text += ", input '" + name + "' as no scalar";
  return text;
}

}  // namespace plimsoll
