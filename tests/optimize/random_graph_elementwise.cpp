#include "random_graph.h"

#include <numeric>

#include "ops/registry.h"

namespace plimsoll {

RandomGraph::Item RandomGraph::activated(Item x) {
  const std::string op = one_of({"Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip"});
  std::vector<Attribute> attributes;
  std::vector<Edge*> inputs = {x.edge};
  if (op == "LeakyRelu" && chance(0.5)) attributes.push_back(attribute("alpha", 0.2f));
  if (op == "HardSigmoid" && chance(0.5)) attributes.push_back(attribute("alpha", 1.0f / 6));
  if (op == "Clip") {
    inputs.push_back(chance(0.8) ? constant({}, std::vector<float>{0.0f}) : nullptr);
    inputs.push_back(chance(0.8) ? constant({}, std::vector<float>{chance(0.5) ? 6.0f : 0.7f}) : nullptr);
  }
  x.edge = node(op, inputs, attributes);
  return x;
}

void RandomGraph::unary() {
  Item x = any();
  if (chance(0.5)) {
    x = activated(x);
  } else {
    std::string op = one_of(
        {"Identity", "Neg", "Abs", "Elu", "Softplus", "Erf", "Softsign", "Cast", "Sqrt", "Exp", "Sum"});
    if (find_op("", op) == nullptr) op = "Identity";
    std::vector<Attribute> attributes;
    if (op == "Cast") attributes.push_back(attribute("to", int64_t{1}));
    if (op == "Sqrt") x.edge = node("Add", {node("Abs", {x.edge}), scalar(0.5f)});
    if (op == "Exp") x.edge = node("Tanh", {x.edge});
    x.edge = node(op, {x.edge}, attributes);
  }
  keep(x.edge, x.shape);
}

void RandomGraph::binary() {
  const Item x = any();
  const std::string op = one_of({"Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min"});
  Edge* other = nullptr;
  Shape shape = x.shape;
  const bool divides = op == "Div";
  if (chance(0.55)) {
    if (chance(0.15)) {
      other = scalar(op == "Mul" || op == "Div" ? 1.0f : 0.0f);  // neutral
      if (x.shape.empty())
        shape = broadcast(x.shape, other->data != nullptr
                                       ? Shape(other->data->dims.begin(), other->data->dims.end())
                                       : Shape{});
      if (other->data == nullptr && x.shape.empty()) return;
    } else {
      other = broadcast_constant(x.shape, divides ? 0.5f : -1.5f, divides ? 2.0f : 1.5f);
    }
    if (!divides && chance(0.3)) {
      keep(node(op, {other, x.edge}), shape);
      return;
    }
  } else {
    const Item y = any([&](const Item& i) { return broadcasts(i.shape, x.shape); });
    if (y.edge == nullptr) return;
    shape = broadcast(x.shape, y.shape);
    other = divides ? node("Add", {node("Abs", {y.edge}), constant({}, std::vector<float>{0.5f})}) : y.edge;
  }
  keep(node(op, {x.edge, other}), shape);
}

void RandomGraph::residual() {
  const Item x = any();
  const Item y = any([&](const Item& i) { return i.shape == x.shape; });
  keep(node("Add", {x.edge, y.edge}), x.shape);
  if (chance(0.5)) {
    const Item z = activated(items_.back());
    keep(z.edge, z.shape);
  }
}

void RandomGraph::where() {
  const Item x = any();
  const Item y = any([&](const Item& i) { return broadcasts(i.shape, x.shape); });
  if (y.edge == nullptr) return;
  // The condition must not hang on rounding.
  Shape dims = x.shape;
  for (int64_t& d : dims) {
    if (chance(0.3)) d = 1;
  }
  Edge* condition = node("Greater", {random_constant(dims), constant({}, std::vector<float>{0.1003f})});
  keep(node("Where", {condition, x.edge, y.edge}), broadcast(x.shape, y.shape));
}

void RandomGraph::dropout() {
  const Item x = any();
  std::vector<Edge*> inputs = {x.edge};
  std::vector<Attribute> attributes;
  if (opset_ >= 12) {
    if (chance(0.5)) inputs.push_back(constant({}, std::vector<float>{0.3f}));
  } else {
    attributes.push_back(attribute("ratio", 0.3f));
  }
  keep(node("Dropout", inputs, attributes), x.shape);
}

RandomGraph::Item RandomGraph::transposed(const Item& x) {
  Shape perm = random_permutation(x.shape.size());
  std::vector<Attribute> attributes;
  if (chance(0.2)) {
    std::iota(perm.rbegin(), perm.rend(), 0);
  } else {
    if (x.shape.size() >= 3 && chance(0.4)) {  // to channels-last, or back
      std::iota(perm.begin(), perm.end(), 0);
      chance(0.5) ? std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end())
                  : std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
    } else if (x.shape.size() == 4 && chance(0.4)) {  // heads
      perm = {0, 2, 1, 3};
    }
    attributes.push_back(attribute("perm", perm));
  }
  Shape shape;
  for (int64_t axis : perm) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return {node("Transpose", {x.edge}, attributes), shape};
}

void RandomGraph::transpose() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  Item y = transposed(x);
  if (chance(0.3)) y = transposed(y);
  keep(y.edge, y.shape);
}

}  // namespace plimsoll
