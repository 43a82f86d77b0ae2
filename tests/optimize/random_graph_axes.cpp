#include "random_graph.h"

namespace plimsoll {

void RandomGraph::softmax() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  std::vector<Attribute> attributes;
  if (chance(0.8) || rank == 1)
    attributes.push_back(attribute("axis", between(opset_ >= 11 ? -rank : 0, rank - 1)));
  keep(node(one_of({"Softmax", "Softmax", "LogSoftmax"}), {x.edge}, attributes), x.shape);
}

void RandomGraph::reduce() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const std::string op = one_of(
      {"ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"});
  const auto rank = static_cast<int64_t>(x.shape.size());
  const bool keeps = chance(0.5), all = chance(0.15);
  Shape axes, shape;
  for (int64_t i = 0; i < rank; ++i) {
    if (all || chance(0.4)) {
      axes.push_back(chance(0.2) ? i - rank : i);
      if (keeps) shape.push_back(1);
    } else {
      shape.push_back(x.shape[static_cast<size_t>(i)]);
    }
  }
  if (axes.empty()) return;
  std::vector<Edge*> inputs = {x.edge};
  std::vector<Attribute> attributes = {attribute("keepdims", int64_t{keeps})};
  if (!all || chance(0.5)) {
    const bool by_input = opset_ >= 18 || (op == "ReduceSum" && opset_ >= 13);
    by_input ? inputs.push_back(integers(axes)) : attributes.push_back(attribute("axes", axes));
  }
  keep(node(op, inputs, attributes), shape);
}

void RandomGraph::layer_normalization() {
  const Item x = ranked(1, 4);
  if (x.edge == nullptr) return;
  const int64_t width = x.shape.back();
  if (opset_ >= 17 && chance(0.3)) {
    keep(node("LayerNormalization", {x.edge, random_constant({width}), random_constant({width})},
              {attribute("axis", int64_t{-1})}),
         x.shape);
    return;
  }
  // Written out, now and then over another axis or with something read from within.
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = chance(0.85) ? -1 : between(0, rank - 1);
  const auto mean = [&](Edge* of) {
    if (opset_ >= 18) return node("ReduceMean", {of, integers({axis})});
    return node("ReduceMean", {of}, {attribute("axes", Shape{axis}), attribute("keepdims", int64_t{1})});
  };
  Edge* centered = node("Sub", {x.edge, mean(x.edge)});
  Edge* squared = chance(0.5) ? node("Mul", {centered, centered}) : node("Pow", {centered, scalar(2)});
  Edge* variance = mean(squared);
  if (chance(0.05)) keep(centered, x.shape);
  Edge* deviation = node("Sqrt", {node("Add", {variance, constant({}, std::vector<float>{0.01f})})});
  Edge* y = node("Div", {centered, deviation});
  if (chance(0.9)) {
    Shape dims = chance(0.6) ? Shape{width} : Shape(x.shape.size(), 1);
    dims.back() = width;
    Edge* scale = random_constant(dims, 0.5f, 1.5f);
    y = chance(0.5) ? node("Mul", {y, scale}) : node("Mul", {scale, y});
    if (chance(0.8)) y = node("Add", {y, random_constant(dims)});
  }
  keep(y, x.shape);
}

void RandomGraph::gelu() {
  const Item x = any();
  if (x.shape.empty() && chance(0.8)) return;
  if (opset_ >= 20 && chance(0.3)) {
    keep(node("Gelu", {x.edge}), x.shape);
    return;
  }
  const auto number = [&](float value) { return constant({}, std::vector<float>{value}); };
  Edge* inner =
      chance(0.5) ? node("Div", {x.edge, number(1.41421356f)}) : node("Mul", {x.edge, number(0.70710678f)});
  Edge* sum = node("Add", {node("Erf", {inner}), number(1)});
  Edge* y = nullptr;
  switch (between(0, 2)) {
    case 0:
      y = node("Mul", {node("Mul", {x.edge, sum}), number(0.5f)});
      break;
    case 1:
      y = node("Mul", {node("Mul", {x.edge, number(0.5f)}), sum});
      break;
    default:
      y = node("Mul", {x.edge, node("Div", {sum, number(2)})});
  }
  keep(y, x.shape);
}

void RandomGraph::hard_swish() {
  const Item x = any();
  const auto number = [&](float value) { return constant({}, std::vector<float>{value}); };
  if (opset_ >= 14 && chance(0.2)) {
    keep(node("HardSwish", {x.edge}), x.shape);
    return;
  }
  Edge* gate = node("Clip", {node("Add", {x.edge, number(3)}), number(0), number(6)});
  Edge* y = nullptr;
  switch (between(0, 2)) {
    case 0:
      y = node("Div", {node("Mul", {x.edge, gate}), number(6)});
      break;
    case 1:
      y = node("Mul", {x.edge, node("Div", {gate, number(6)})});
      break;
    default:
      y = node("Mul", {gate, number(1.0f / 6)});
  }
  keep(y, x.shape);
}

void RandomGraph::silu() {
  const Item x = any();
  Edge* gate = node("Sigmoid", {x.edge});
  if (chance(0.1)) keep(gate, x.shape);
  keep(chance(0.5) ? node("Mul", {x.edge, gate}) : node("Mul", {gate, x.edge}), x.shape);
}

// One value of a branch, made from x or what else can be seen; it has the shape of x.
Edge* RandomGraph::branch_result(const Item& x, Graph& body) {
  Graph* outside = current_;
  const size_t visible = items_.size();
  current_ = &body;
  ++depth_;
  items_.push_back(x);
  for (int64_t i = between(0, 3); i > 0; --i) step();
  // The last value of the shape, not one of outside.
  Item result = x;
  for (size_t i = visible; i < items_.size(); ++i) {
    if (items_[i].shape == x.shape) result = items_[i];
  }
  if (result.edge->graph != &body || chance(0.5)) {
    Edge* other = dimension(x, 0);
    if (chance(0.5)) {
      other = node("Cast", {other}, {attribute("to", int64_t{1})});
      result.edge = node("Add", {result.edge, other});
    } else {
      result = activated(result);
    }
  }
  items_.resize(visible);
  --depth_;
  current_ = outside;
  return result.edge;
}

void RandomGraph::branch() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr || depth_ >= 2) return;
  Edge* condition = nullptr;
  if (chance(0.2)) {
    condition =
        node("Cast", {constant({}, std::vector<int64_t>{between(0, 1)})}, {attribute("to", int64_t{9})});
  } else if (chance(0.3)) {  // of a shape
    condition = node("Equal", {dimension(x, 0), integers({between(1, 4)})});
  } else {  // of the data
    Edge* largest = node("ReduceMax", {x.edge}, {attribute("keepdims", int64_t{0})});
    condition = node(
        "Greater", {largest, constant({}, std::vector<float>{static_cast<float>(between(-2, 2)) + 0.0317f})});
  }
  Graph* then_branch = arena_.make<Graph>(*current_);
  Graph* else_branch = arena_.make<Graph>(*current_);
  for (Graph* body : {then_branch, else_branch}) {
    Edge* result = branch_result(x, *body);
    result->facts.type.type = ElementType::kFloat;
    body->name = body == then_branch ? "then" : "else";
    body->outputs.push_back(result);
  }
  keep(node("If", {condition},
            {ModelBuilder::body("then_branch", then_branch), ModelBuilder::body("else_branch", else_branch)}),
       x.shape);
}

}  // namespace plimsoll
