#include "random_graph.h"

#include <algorithm>

namespace plimsoll {

void RandomGraph::reshape() {
  const Item x = any();
  Shape left = x.shape, shape;
  if (x.shape.size() >= 3 && chance(0.4)) {  // (N, C) stay, positions are regrouped
    int64_t rest = 1;
    for (size_t i = 2; i < x.shape.size(); ++i) rest *= x.shape[i];
    shape = {x.shape[0], x.shape[1]};
    if (rest % 2 == 0 && chance(0.6)) shape.push_back(2), rest /= 2;
    shape.push_back(rest);
  } else {
    for (int64_t rest = count(x.shape); shape.size() < 4;) {
      std::vector<int64_t> divisors;
      for (int64_t d = 1; d <= std::min<int64_t>(rest, 12); ++d) {
        if (rest % d == 0) divisors.push_back(d);
      }
      if (chance(0.3) || shape.size() == 3 || divisors.empty()) {
        shape.push_back(rest);
        break;
      }
      shape.push_back(one_of(divisors));
      rest /= shape.back();
    }
  }
  Shape told = shape;
  if (chance(0.4) && count(shape) > 0)
    told[static_cast<size_t>(between(0, static_cast<int64_t>(told.size()) - 1))] = -1;
  for (size_t i = 0; i < told.size() && i < x.shape.size(); ++i) {
    if (told[i] > 0 && told[i] == x.shape[i] && chance(0.4)) told[i] = 0;
  }
  keep(node("Reshape", {x.edge, integers(told)}), shape);
}

// A dimension of x as a tensor of one element, read from its shape.
Edge* RandomGraph::dimension(const Item& x, size_t axis) {
  Edge* shape = node("Shape", {x.edge});
  const auto at = static_cast<int64_t>(axis);
  switch (between(0, 3)) {
    case 0:
      return node("Gather", {shape, integers({at})}, {attribute("axis", int64_t{0})});
    case 1:
      return node("Slice", {shape, integers({at}), integers({at + 1}), integers({0})});
    case 2: {
      Edge* one =
          node("Gather", {shape, constant({}, std::vector<int64_t>{at})}, {attribute("axis", int64_t{0})});
      if (chance(0.3)) {
        one = node("Cast", {one}, {attribute("to", int64_t{6})});
        one = node("Cast", {one}, {attribute("to", int64_t{7})});
      }
      return node("Reshape", {one, integers({1})});
    }
    default: {
      if (opset_ < 15) return node("Gather", {shape, integers({at})}, {attribute("axis", int64_t{0})});
      return node("Shape", {x.edge}, {attribute("start", at), attribute("end", at + 1)});
    }
  }
}

void RandomGraph::computed_reshape() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  // The first `kept` dimensions stay, the next two are one, the rest is -1 or stays.
  const int64_t kept = between(0, rank - 1);
  std::vector<Edge*> parts;
  Shape shape;
  for (int64_t i = 0; i < kept; ++i) {
    parts.push_back(chance(0.6) ? dimension(x, static_cast<size_t>(i))
                                : integers({x.shape[static_cast<size_t>(i)]}));
    shape.push_back(x.shape[static_cast<size_t>(i)]);
  }
  int64_t at = kept;
  if (at + 1 < rank && chance(0.6)) {
    Edge* a = dimension(x, static_cast<size_t>(at));
    Edge* b = dimension(x, static_cast<size_t>(at + 1));
    parts.push_back(node("Mul", {a, b}));
    shape.push_back(x.shape[static_cast<size_t>(at)] * x.shape[static_cast<size_t>(at + 1)]);
    at += 2;
  }
  const Shape rest(x.shape.begin() + at, x.shape.end());
  if (chance(0.5) || rest.empty()) {
    parts.push_back(integers({chance(0.7) && count(x.shape) > 0 ? -1 : count(rest)}));
    shape.push_back(count(rest));
  } else {
    for (size_t i = 0; i < rest.size(); ++i) {
      parts.push_back(dimension(x, static_cast<size_t>(at) + i));
      shape.push_back(rest[i]);
    }
  }
  Edge* told = node("Concat", parts, {attribute("axis", int64_t{0})});
  keep(node("Reshape", {x.edge, told}), shape);
}

void RandomGraph::shape_arithmetic() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const auto axis = static_cast<size_t>(between(0, static_cast<int64_t>(x.shape.size()) - 1));
  Edge* size = dimension(x, axis);
  if (chance(0.3)) {  // a number in the data: x / sqrt(width)
    Edge* number = node("Cast", {size}, {attribute("to", int64_t{1})});
    if (chance(0.5)) number = node("Sqrt", {number});
    keep(node(chance(0.5) ? "Div" : "Mul", {x.edge, number}), x.shape);
  } else if (chance(0.5)) {  // the first half of an axis
    Edge* half = node("Div", {node("Add", {size, integers({1})}), integers({2})});
    Shape shape = x.shape;
    shape[axis] = (shape[axis] + 1) / 2;
    keep(node("Slice", {x.edge, integers({0}), half, integers({static_cast<int64_t>(axis)})}), shape);
  } else {  // a tensor of its shape
    Attribute a;
    a.name = "value", a.type = AttributeType::kTensor;
    TensorData one;
    one.type = ElementType::kFloat;
    one.dims = arena_.copy(Shape{1});
    std::span<float> value = arena_.array<float>(1);
    value[0] = 0.5f;
    one.bytes = std::as_bytes(std::span<const float>(value));
    a.tensor = arena_.make<TensorData>(one);
    Edge* full = node("ConstantOfShape", {node("Shape", {x.edge})}, {a});
    keep(node(one_of({"Add", "Mul"}), {x.edge, full}), x.shape);
  }
}

void RandomGraph::expand() {
  const Item x = any();
  Shape shape = x.shape;
  if (shape.size() < 4 && chance(0.4)) shape.insert(shape.begin(), between(1, 3));
  for (int64_t& d : shape) {
    if (d == 1 && chance(0.5)) d = between(1, 3);
  }
  if (count(shape) > kMostElements) return;
  keep(node("Expand", {x.edge, integers(shape)}), shape);
}

void RandomGraph::squeeze() {
  Item x = any([](const Item& i) { return std::count(i.shape.begin(), i.shape.end(), 1) > 0; });
  if (x.edge == nullptr) return;
  const bool all = chance(0.2);
  Shape axes, shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] == 1 && (all || chance(0.6))) {
      axes.push_back(chance(0.3) && opset_ >= 11
                         ? static_cast<int64_t>(i) - static_cast<int64_t>(x.shape.size())
                         : static_cast<int64_t>(i));
    } else {
      shape.push_back(x.shape[i]);
    }
  }
  if (axes.empty()) return;
  if (opset_ < 13) {
    keep(node("Squeeze", {x.edge}, {attribute("axes", axes)}), shape);
  } else {
    keep(node("Squeeze", {x.edge, integers(axes)}), shape);
  }
}

void RandomGraph::unsqueeze() {
  const Item x = ranked(0, 4);
  if (x.edge == nullptr) return;
  Shape shape = x.shape, axes;
  const auto most = static_cast<int64_t>(shape.size()) + 1;
  for (int64_t i = between(1, shape.size() < 4 ? 2 : 1); i > 0; --i) {
    const int64_t at = between(0, std::min<int64_t>(most, static_cast<int64_t>(shape.size())));
    shape.insert(shape.begin() + at, -1);
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      shape[i] = 1;
      axes.push_back(chance(0.2) ? static_cast<int64_t>(i) - static_cast<int64_t>(shape.size())
                                 : static_cast<int64_t>(i));
    }
  }
  if (opset_ < 13) {
    keep(node("Unsqueeze", {x.edge}, {attribute("axes", axes)}), shape);
  } else {
    keep(node("Unsqueeze", {x.edge, integers(axes)}), shape);
  }
}

void RandomGraph::flatten() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const int64_t axis = between(0, static_cast<int64_t>(x.shape.size()));
  keep(node("Flatten", {x.edge}, {attribute("axis", axis)}),
       {count(Shape(x.shape.begin(), x.shape.begin() + axis)),
        count(Shape(x.shape.begin() + axis, x.shape.end()))});
}

}  // namespace plimsoll
