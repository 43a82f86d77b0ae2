#include "random_graph.h"

namespace plimsoll {

void RandomGraph::matmul() {
  const Item x = ranked(1, 4);
  if (x.edge == nullptr) return;
  const int64_t k = x.shape.back();
  Item y = any([&](const Item& i) {
    if (i.shape.empty() || i.shape.size() > 4) return false;
    const Shape& s = i.shape;
    const bool is_vector = s.size() == 1;
    if ((is_vector ? s[0] : s[s.size() - 2]) != k) return false;
    if (x.shape.size() == 1 || is_vector) return true;
    return broadcasts(Shape(x.shape.begin(), x.shape.end() - 2), Shape(s.begin(), s.end() - 2));
  });
  if (y.edge == nullptr || chance(0.4)) {
    Shape dims = chance(0.1) ? Shape{k} : Shape{k, between(1, 7)};
    if (dims.size() == 2 && chance(0.2))
      dims.insert(dims.begin(), x.shape.size() > 2 && chance(0.5) ? x.shape[x.shape.size() - 3] : 1);
    y = {random_constant(dims, -0.7f, 0.7f), dims};
  } else if (x.shape.size() >= 2 && y.shape == x.shape && chance(0.3)) {
    y = x;
  }
  if (x.shape.size() >= 2 && y.shape.size() >= 2 && y.shape[y.shape.size() - 2] != k) return;
  Shape shape;
  const Shape a = x.shape.size() == 1 ? Shape{} : Shape(x.shape.begin(), x.shape.end() - 2);
  const Shape b = y.shape.size() == 1 ? Shape{} : Shape(y.shape.begin(), y.shape.end() - 2);
  shape = broadcast(a, b);
  if (x.shape.size() > 1) shape.push_back(x.shape[x.shape.size() - 2]);
  if (y.shape.size() > 1) shape.push_back(y.shape.back());
  if (count(shape) > kMostElements) return;
  keep(node("MatMul", {x.edge, y.edge}), shape);
}

void RandomGraph::linear() {
  Item x = ranked(2, 4);
  if (x.edge == nullptr) return;
  if (chance(0.3)) x = transposed(x);
  if (chance(0.2)) x.edge = node("Mul", {x.edge, scalar(0.5f)});
  const int64_t k = x.shape.back(), n = between(1, 6);
  Edge* w = nullptr;
  if (chance(0.25)) {
    w = node("Transpose", {random_constant({n, k}, -0.7f, 0.7f)}, {attribute("perm", Shape{1, 0})});
  } else {
    w = random_constant({k, n}, -0.7f, 0.7f);
  }
  Item y = {node("MatMul", {x.edge, w}), x.shape};
  y.shape.back() = n;
  if (chance(0.1)) keep(y.edge, y.shape);
  if (chance(0.3)) y.edge = node(chance(0.5) ? "Mul" : "Div", {y.edge, scalar(0.8f)});
  if (chance(0.6)) {
    Edge* bias = chance(0.7) ? random_constant({n}) : broadcast_constant(y.shape, -1, 1);
    y.edge = chance(0.5) ? node("Add", {y.edge, bias}) : node("Add", {bias, y.edge});
  }
  if (chance(0.2)) y = transposed(y);
  if (chance(0.4)) y = activated(y);
  if (chance(0.3)) y = transposed(y);
  if (chance(0.3)) {
    const Item z = any([&](const Item& i) { return i.shape == y.shape; });
    if (z.edge != nullptr) y.edge = node("Add", {z.edge, y.edge});
  }
  if (chance(0.2)) y = transposed(y);
  keep(y.edge, y.shape);
}

void RandomGraph::gemm() {
  const Item x = ranked(2, 2);
  if (x.edge == nullptr) return;
  const bool trans_a = chance(0.3), trans_b = chance(0.5);
  const int64_t m = x.shape[trans_a ? 1 : 0], k = x.shape[trans_a ? 0 : 1], n = between(1, 6);
  std::vector<Edge*> inputs = {x.edge, random_constant(trans_b ? Shape{n, k} : Shape{k, n}, -0.7f, 0.7f)};
  const std::vector<Shape> biases = {{n}, {1, n}, {m, 1}, {m, n}, {1}, {}};
  if (chance(0.75)) inputs.push_back(random_constant(chance(0.5) ? Shape{n} : one_of(biases)));
  std::vector<Attribute> attributes;
  if (trans_a) attributes.push_back(attribute("transA", int64_t{1}));
  if (trans_b) attributes.push_back(attribute("transB", int64_t{1}));
  if (chance(0.3)) attributes.push_back(attribute("alpha", 0.5f));
  if (chance(0.3)) attributes.push_back(attribute("beta", chance(0.3) ? 0.0f : 0.25f));
  Item y = {node("Gemm", inputs, attributes), {m, n}};
  if (chance(0.3)) y = transposed(y);
  if (chance(0.3)) y = activated(y);
  keep(y.edge, y.shape);
}

void RandomGraph::attention() {
  const Item x = ranked(3, 3);
  if (x.edge == nullptr) return;
  const int64_t batch = x.shape[0], seq = x.shape[1], width = x.shape[2];
  const int64_t heads = width % 2 == 0 ? 2 : 1, size = width / heads;
  const auto project = [&](const Shape& perm) {
    Edge* y = node("MatMul", {x.edge, random_constant({width, width}, -0.7f, 0.7f)});
    if (chance(0.7)) y = node("Add", {y, random_constant({width})});
    y = node("Reshape",
             {y, integers(chance(0.5) ? Shape{0, 0, heads, size} : Shape{batch, seq, heads, size})});
    return node("Transpose", {y}, {attribute("perm", perm)});
  };
  Edge* q = project({0, 2, 1, 3});
  Edge* k = nullptr;
  if (chance(0.5)) {
    k = project({0, 2, 3, 1});
  } else {
    k = node("Transpose", {project({0, 2, 1, 3})}, {attribute("perm", Shape{0, 1, 3, 2})});
  }
  Edge* scores = node("MatMul", {q, k});
  scores = node(chance(0.5) ? "Div" : "Mul", {scores, scalar(0.6f)});
  const std::vector<Shape> masks = {{seq}, {1, seq}, {seq, 1}, {batch, 1, 1, seq}, {1, heads, seq, seq}, {}};
  if (opset_ >= 9 && chance(0.3)) {
    Edge* flags = node("Greater", {random_constant(one_of(masks)), scalar(0.2f)});
    Edge* number = scalar(one_of(std::vector<float>{-1e4f, -1.5f, -3e38f}));
    scores = chance(0.5) ? node("Where", {flags, scores, number}) : node("Where", {flags, number, scores});
  }
  if (chance(0.4)) {
    Edge* mask = random_constant(one_of(masks));
    scores = chance(0.5) ? node("Add", {scores, mask}) : node("Add", {mask, scores});
  }
  if (opset_ >= 13 || chance(0.5))
    scores = node("Softmax", {scores}, {attribute("axis", opset_ >= 13 ? int64_t{-1} : int64_t{3})});
  if (opset_ >= 9 && chance(0.2)) scores = node("Where", {node("IsNaN", {scores}), scalar(0.0f), scores});
  Edge* y = node("MatMul", {scores, project({0, 2, 1, 3})});
  if (chance(0.1)) keep(scores, {batch, heads, seq, seq});
  y = node("Transpose", {y}, {attribute("perm", Shape{0, 2, 1, 3})});
  keep(node("Reshape", {y, integers({batch, seq, width})}), x.shape);
}

}  // namespace plimsoll
