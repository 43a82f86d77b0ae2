#include "random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/registry.h"

namespace plimsoll {

namespace {

constexpr int64_t kMostElements = 3000;  // of one tensor, so that a graph takes a moment only

int64_t product_of(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

RandomGraph::RandomGraph(uint32_t seed, int steps)
    : budget_("random", 0),
      arena_(budget_),
      dims_(arena_),
      graph_(std::make_unique<Graph>(arena_, dims_)),
      current_(graph_.get()),
      random_(seed * 2654435761u + 1) {
  const std::vector<int> opsets = {11, 13, 17, 18, 20};
  opset_ = one_of(opsets);
  imports_[0] = {"", opset_};
  graph_->opsets = imports_;
  graph_->ir_version = 8;
  graph_->name = "random";
  const int64_t inputs = between(1, 3);
  for (int64_t i = 0; i < inputs; ++i) add_input();
  const int64_t wanted = between(2, 14);
  for (int64_t i = 0; i < std::min<int64_t>(wanted, steps); ++i) step();

  // What nobody uses is an output, and a few of the others. The choice does not disturb the steps.
  std::mt19937 outputs_random(seed);
  std::vector<int> uses = count_uses(*graph_);
  for (size_t i = 0; i < items_.size(); ++i) {
    Edge* edge = items_[i].edge;
    const bool extra = outputs_random() % 10 == 0;
    if (edge->producer == nullptr || (uses[edge->id] > 0 && !extra)) continue;
    edge->facts.type.type = ElementType::kFloat;
    graph_->outputs.push_back(edge);
    output_names_.emplace_back(edge->name);
  }
  if (graph_->outputs.empty()) {
    Edge* edge = node("Identity", {items_[0].edge});
    edge->facts.type.type = ElementType::kFloat;
    graph_->outputs.push_back(edge);
    output_names_.emplace_back(edge->name);
  }
}

namespace {

void describe_graph(const Graph& graph, const std::string& indent, std::string& text) {
  for (const Node* node : graph.nodes) {
    text += fmt::format("{}{}", indent, node->op_type);
    for (const Edge* edge : node->inputs) {
      text += edge == nullptr ? " -" : fmt::format(" {}", edge->name);
      if (edge != nullptr && edge->data != nullptr) {
        text += to_string(edge->data->dims);
        if (edge->data->type == ElementType::kInt64) {
          const auto* values = reinterpret_cast<const int64_t*>(edge->data->bytes.data());
          text += "=" + to_string(std::span(values, edge->data->bytes.size() / 8));
        }
      }
    }
    text += " ->";
    for (const Edge* edge : node->outputs) text += edge == nullptr ? " -" : fmt::format(" {}", edge->name);
    for (const Attribute& a : node->attributes) {
      text += fmt::format("  {}=", a.name);
      if (a.type == AttributeType::kInt) text += std::to_string(a.i);
      if (a.type == AttributeType::kFloat) text += std::to_string(a.f);
      if (a.type == AttributeType::kString) text += a.s;
      if (a.type == AttributeType::kInts) text += to_string(a.ints);
    }
    text += "\n";
    for (const Attribute& a : node->attributes) {
      if (a.graph == nullptr) continue;
      text += fmt::format("{}  {}:\n", indent, a.name);
      describe_graph(*a.graph, indent + "    ", text);
    }
  }
  text += indent + "outputs";
  for (const Edge* edge : graph.outputs) text += fmt::format(" {}", edge->name);
  text += "\n";
}

}  // namespace

std::string RandomGraph::describe() const {
  std::string text = fmt::format("opset {}\n", opset_);
  for (size_t i = 0; i < graph_->inputs.size(); ++i)
    text += fmt::format("{} {} = {}\n", graph_->inputs[i]->name, to_string(graph_->inputs[i]->facts.type),
                        to_string(inputs_[i].GetShape()));
  describe_graph(*graph_, "", text);
  return text;
}

// ---- chance -----------------------------------------------------------------------------------------

// Not std's distributions: they differ from library to library.
int64_t RandomGraph::between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

bool RandomGraph::chance(double probability) {
  return static_cast<double>(random_() % 10000) < probability * 10000;
}

std::string RandomGraph::one_of(std::initializer_list<const char*> list) {
  return list.begin()[between(0, static_cast<int64_t>(list.size()) - 1)];
}

RandomGraph::Shape RandomGraph::random_shape(int64_t low_rank, int64_t high_rank) {
  Shape shape(static_cast<size_t>(between(low_rank, high_rank)));
  for (int64_t& d : shape) d = chance(0.2) ? 1 : between(2, shape.size() > 3 ? 4 : 6);
  return shape;
}

RandomGraph::Shape RandomGraph::random_permutation(size_t rank) {
  Shape perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = rank; i-- > 1;)
    std::swap(perm[i], perm[static_cast<size_t>(between(0, static_cast<int64_t>(i)))]);
  return perm;
}

// ---- parts ------------------------------------------------------------------------------------------

void RandomGraph::add_input() {
  const bool is_image = chance(0.5);
  Shape shape = random_shape(is_image ? 3 : 0, is_image ? 5 : 4);
  if (is_image) {
    for (size_t i = 2; i < shape.size(); ++i) shape[i] = between(1, shape.size() == 3 ? 9 : 6);
  }
  const std::string name = fmt::format("input{}", inputs_.size());
  Edge* edge = graph_->add_edge(name);
  std::vector<Dim> dims;
  for (int64_t d : shape) {
    Dim dim = d;
    // One symbol for one size most of the time, another now and then.
    if (chance(0.3)) dim = dims_.symbol(chance(0.8) ? fmt::format("s{}", d) : fmt::format("t{}", next_++));
    dims.push_back(dim);
  }
  edge->facts.type = {
      ValueKind::kTensor, ElementType::kFloat, ElementType::kUndefined, true, arena_.copy(dims), nullptr};
  graph_->inputs.push_back(edge);
  Value value = Value::CreateTensor(ElementType::kFloat, shape);
  for (size_t i = 0; i < value.GetElementCount(); ++i)
    value.GetTensorMutableData<float>()[i] = static_cast<float>(between(-1000, 1000)) / 500;
  inputs_.push_back(value);
  input_names_.push_back(name);
  items_.push_back({edge, shape});
}

template <typename T>
Edge* RandomGraph::make_constant(const Shape& dims, const std::vector<T>& values) {
  TensorData tensor;
  tensor.type = element_type_of<T>();
  tensor.dims = arena_.copy(dims);
  std::span<T> copy = arena_.array<T>(values.size());
  std::copy(values.begin(), values.end(), copy.begin());
  tensor.bytes = std::as_bytes(std::span<const T>(copy));
  Graph& home = chance(0.3) ? *graph_ : *current_;
  if (chance(0.15)) {
    Attribute a;
    a.name = "value", a.type = AttributeType::kTensor, a.tensor = arena_.make<TensorData>(tensor);
    return nodes("Constant", {}, 1, {a})[0];
  }
  return home.add_constant(fmt::format("c{}", next_++), tensor);
}
Edge* RandomGraph::constant(const Shape& dims, const std::vector<float>& values) {
  return make_constant(dims, values);
}
Edge* RandomGraph::constant(const Shape& dims, const std::vector<int64_t>& values) {
  return make_constant(dims, values);
}
Edge* RandomGraph::integers(const std::vector<int64_t>& values) {
  return constant({static_cast<int64_t>(values.size())}, values);
}
Edge* RandomGraph::scalar(float value) {
  return chance(0.3) ? constant({1}, std::vector<float>{value}) : constant({}, std::vector<float>{value});
}
Edge* RandomGraph::random_constant(const Shape& dims, float low, float high) {
  std::vector<float> values(static_cast<size_t>(count(dims)));
  for (float& v : values) v = low + (high - low) * static_cast<float>(between(0, 1000)) / 1000;
  return constant(dims, values);
}

Attribute RandomGraph::attribute(const char* name, int64_t value) {
  return ModelBuilder::integer(name, value);
}
Attribute RandomGraph::attribute(const char* name, float value) {
  Attribute a;
  a.name = name, a.type = AttributeType::kFloat, a.f = value;
  return a;
}
Attribute RandomGraph::attribute(const char* name, const char* value) {
  Attribute a;
  a.name = name, a.type = AttributeType::kString, a.s = value;
  return a;
}
Attribute RandomGraph::attribute(const char* name, const std::vector<int64_t>& values) {
  return ModelBuilder::integers(name, arena_.copy(values));
}

std::vector<Edge*> RandomGraph::nodes(const std::string& op, const std::vector<Edge*>& inputs, size_t outputs,
                                      const std::vector<Attribute>& attributes) {
  std::vector<Edge*> made;
  for (size_t i = 0; i < outputs; ++i) made.push_back(current_->add_edge(fmt::format("v{}", next_++)));
  std::vector<Edge*> given = inputs;
  while (!given.empty() && given.back() == nullptr) given.pop_back();
  current_->add_node("", op, fmt::format("{}{}", op, next_++), given, made, attributes);
  return made;
}

RandomGraph::Item RandomGraph::any(const std::function<bool(const Item&)>& fits) {
  std::vector<Item> found;
  for (const Item& item : items_) {
    if (fits(item)) found.push_back(item);
  }
  if (found.empty()) return {};
  const size_t recent = found.size() > 3 ? found.size() - 3 : 0;
  return chance(0.6) ? found[static_cast<size_t>(
                           between(static_cast<int64_t>(recent), static_cast<int64_t>(found.size()) - 1))]
                     : one_of(found);
}

RandomGraph::Item RandomGraph::ranked(size_t low, size_t high) {
  return any([&](const Item& x) { return x.shape.size() >= low && x.shape.size() <= high; });
}
RandomGraph::Item RandomGraph::image() {
  return ranked(3, 5);
}

void RandomGraph::keep(Edge* edge, Shape shape) {
  items_.push_back({edge, std::move(shape)});
}

int64_t RandomGraph::count(const Shape& shape) {
  return product_of(shape);
}

RandomGraph::Shape RandomGraph::broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

bool RandomGraph::broadcasts(const Shape& a, const Shape& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return count(broadcast(a, b)) <= kMostElements;
}

Edge* RandomGraph::broadcast_constant(const Shape& shape, float low, float high) {
  if (chance(0.25)) return random_constant({}, low, high);
  if (chance(0.35) && shape.size() >= 2) return per_channel(shape, low, high);
  Shape dims(shape.end() - between(0, static_cast<int64_t>(shape.size())), shape.end());
  for (int64_t& d : dims) {
    if (chance(0.3)) d = 1;
  }
  return random_constant(dims, low, high);
}

Edge* RandomGraph::per_channel(const Shape& shape, float low, float high) {
  Shape dims(shape.size(), 1);
  dims[1] = shape[1];
  if (chance(0.5)) dims.erase(dims.begin());
  return random_constant(dims, low, high);
}

// ---- elementwise ------------------------------------------------------------------------------------

void RandomGraph::step() {
  using Step = void (RandomGraph::*)();
  struct Choice {
    Step step;
    int weight;
  };
  static const std::vector<Choice> choices = {
      {&RandomGraph::unary, 8},
      {&RandomGraph::binary, 9},
      {&RandomGraph::transpose, 7},
      {&RandomGraph::matmul, 5},
      {&RandomGraph::linear, 6},
      {&RandomGraph::gemm, 3},
      {&RandomGraph::attention, 2},
      {&RandomGraph::conv, 5},
      {&RandomGraph::conv_block, 5},
      {&RandomGraph::conv_transpose, 2},
      {&RandomGraph::mobile_block, 1},
      {&RandomGraph::batch_normalization, 3},
      {&RandomGraph::affine, 3},
      {&RandomGraph::pool, 4},
      {&RandomGraph::global_pool, 2},
      {&RandomGraph::reshape, 5},
      {&RandomGraph::computed_reshape, 4},
      {&RandomGraph::squeeze, 3},
      {&RandomGraph::unsqueeze, 3},
      {&RandomGraph::flatten, 2},
      {&RandomGraph::concat, 4},
      {&RandomGraph::split, 3},
      {&RandomGraph::slice, 4},
      {&RandomGraph::pad, 3},
      {&RandomGraph::softmax, 3},
      {&RandomGraph::layer_normalization, 3},
      {&RandomGraph::gelu, 2},
      {&RandomGraph::hard_swish, 2},
      {&RandomGraph::silu, 2},
      {&RandomGraph::reduce, 4},
      {&RandomGraph::expand, 2},
      {&RandomGraph::gather, 2},
      {&RandomGraph::resize, 2},
      {&RandomGraph::shape_arithmetic, 3},
      {&RandomGraph::where, 2},
      {&RandomGraph::dropout, 2},
      {&RandomGraph::residual, 3},
      {&RandomGraph::branch, 4},
  };
  static const int total = [] {
    int sum = 0;
    for (const Choice& c : choices) sum += c.weight;
    return sum;
  }();
  int64_t at = between(0, total - 1);
  for (const Choice& c : choices) {
    if (at < c.weight) return (this->*c.step)();
    at -= c.weight;
  }
}

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

// ---- order of axes ----------------------------------------------------------------------------------

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

// ---- products ---------------------------------------------------------------------------------------

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

// ---- windows ----------------------------------------------------------------------------------------

RandomGraph::Item RandomGraph::convolved(const Item& x) {
  const int64_t channels = x.shape[1];
  const size_t spatial = x.shape.size() - 2;
  const bool depthwise = chance(0.25);
  const int64_t group = depthwise ? channels : channels % 2 == 0 && chance(0.3) ? 2 : 1;
  const int64_t out = depthwise ? channels * between(1, 2) : group * between(1, 4);
  Shape kernel(spatial), strides(spatial, 1), dilations(spatial, 1), pads(2 * spatial, 0),
      shape = {x.shape[0], out};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, std::min<int64_t>(3, x.shape[i + 2]));
    if (chance(0.3)) strides[i] = 2;
    if (chance(0.15) && (kernel[i] - 1) * 2 + 1 <= x.shape[i + 2]) dilations[i] = 2;
    if (chance(0.5)) {
      pads[i] = between(0, kernel[i] - 1);
      pads[i + spatial] = between(0, kernel[i] - 1);
    }
    const int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    shape.push_back((x.shape[i + 2] + pads[i] + pads[i + spatial] - extent) / strides[i] + 1);
  }
  Shape weight = {out, channels / group};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<Attribute> attributes;
  if (group != 1) attributes.push_back(attribute("group", group));
  if (chance(0.5)) attributes.push_back(attribute("kernel_shape", kernel));
  if (strides != Shape(spatial, 1)) attributes.push_back(attribute("strides", strides));
  if (dilations != Shape(spatial, 1)) attributes.push_back(attribute("dilations", dilations));
  if (pads != Shape(2 * spatial, 0)) attributes.push_back(attribute("pads", pads));
  Edge* w = random_constant(weight, -0.6f, 0.6f);
  if (chance(0.1)) w = node("Tanh", {w});
  std::vector<Edge*> inputs = {x.edge, w};
  if (chance(0.5)) inputs.push_back(random_constant({out}));
  return {node("Conv", inputs, attributes), shape};
}

RandomGraph::Item RandomGraph::normalized(const Item& x) {
  const Shape channels = {x.shape[1]};
  std::vector<Attribute> attributes;
  if (chance(0.5)) attributes.push_back(attribute("epsilon", 0.001f));
  return {node("BatchNormalization",
               {x.edge, random_constant(channels), random_constant(channels), random_constant(channels),
                random_constant(channels, 0.5f, 2.0f)},
               attributes),
          x.shape};
}

void RandomGraph::conv() {
  const Item x = image();
  if (x.edge == nullptr) return;
  const Item y = convolved(x);
  keep(y.edge, y.shape);
}

void RandomGraph::conv_block() {
  const Item x = image();
  if (x.edge == nullptr) return;
  Item y = convolved(x);
  if (chance(0.05)) keep(y.edge, y.shape);
  if (chance(0.5)) y = normalized(y);
  if (chance(0.3)) y.edge = node(one_of({"Mul", "Add", "Sub"}), {y.edge, per_channel(y.shape, -1, 1)});
  if (chance(0.4)) {
    const Item z = any([&](const Item& i) { return i.shape == y.shape; });
    if (z.edge != nullptr)
      y.edge = chance(0.5) ? node("Add", {y.edge, z.edge}) : node("Add", {z.edge, y.edge});
  }
  if (chance(0.6)) y = activated(y);
  keep(y.edge, y.shape);
}

// On an image that is large enough to be computed by bands of rows; only its means are kept.
void RandomGraph::mobile_block() {
  const Item x = any([](const Item& i) { return i.shape.size() == 4 && i.shape[0] * i.shape[1] > 0; });
  if (x.edge == nullptr) return;
  const int64_t batch = x.shape[0], size = 68, wide = between(28, 33);
  int64_t channels = x.shape[1];
  Edge* y = node("Mul", {node("GlobalMaxPool", {x.edge}), random_constant({batch, channels, size, size})});
  const auto convolve = [&](int64_t out, int64_t kernel, int64_t group) {
    const Shape pads(4, kernel / 2), strides(2, kernel > 1 && chance(0.3) ? 2 : 1);
    y = node("Conv", {y, random_constant({out, channels / group, kernel, kernel}, -0.3f, 0.3f)},
             {attribute("pads", pads), attribute("strides", strides), attribute("group", group)});
    channels = out;
    if (chance(0.5)) y = node(one_of({"Relu", "Sigmoid", "Tanh"}), {y});
  };
  convolve(wide, 1, 1);
  if (chance(0.4)) {  // pieces of one map, as U-Nets have them
    y = node("Concat", {y, node("Neg", {y})}, {attribute("axis", int64_t{1})});
    channels *= 2;
    convolve(between(1, 9), chance(0.5) ? 3 : 1, 1);
    convolve(wide, 1, 1);
  }
  convolve(wide, chance(0.5) ? 3 : 5, wide);
  if (chance(0.7)) convolve(between(1, 6), 1, 1);
  keep(node("GlobalAveragePool", {y}), {batch, channels, 1, 1});
}

void RandomGraph::conv_transpose() {
  const Item x = ranked(3, 4);
  if (x.edge == nullptr || count(x.shape) > 400) return;
  const size_t spatial = x.shape.size() - 2;
  const int64_t group = x.shape[1] % 2 == 0 && chance(0.3) ? 2 : 1, out = between(1, 3);
  Shape kernel(spatial), strides(spatial), shape = {x.shape[0], out * group};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, 3);
    strides[i] = between(1, 2);
    shape.push_back((x.shape[i + 2] - 1) * strides[i] + kernel[i]);
  }
  Shape weight = {x.shape[1], out};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<Edge*> inputs = {x.edge, random_constant(weight, -0.6f, 0.6f)};
  if (chance(0.5)) inputs.push_back(random_constant({out * group}));
  Item y = {node("ConvTranspose", inputs, {attribute("group", group), attribute("strides", strides)}), shape};
  if (chance(0.4)) y.edge = node("Add", {y.edge, per_channel(y.shape, -1, 1)});
  if (chance(0.3)) y = normalized(y);
  keep(y.edge, y.shape);
}

void RandomGraph::batch_normalization() {
  const Item x = ranked(2, 5);
  if (x.edge == nullptr) return;
  Item y = normalized(x);
  if (chance(0.4)) y = activated(y);
  keep(y.edge, y.shape);
}

void RandomGraph::affine() {
  const Item x = ranked(2, 5);
  if (x.edge == nullptr) return;
  Item y = x;
  for (int64_t i = between(1, 3); i > 0; --i) {
    const std::string op = one_of({"Mul", "Add", "Sub", "Div"});
    Edge* c = chance(0.6) ? per_channel(x.shape, 0.5f, 2.0f) : scalar(0.75f);
    y.edge = op != "Div" && chance(0.3) ? node(op, {c, y.edge}) : node(op, {y.edge, c});
  }
  if (chance(0.3)) {
    const Item z = any([&](const Item& i) { return i.shape == y.shape; });
    y.edge = node("Add", {y.edge, z.edge});
  }
  if (chance(0.3)) y = activated(y);
  keep(y.edge, y.shape);
}

void RandomGraph::pool() {
  const Item x = image();
  if (x.edge == nullptr) return;
  const bool is_max = chance(0.5);
  const size_t spatial = x.shape.size() - 2;
  Shape kernel(spatial), strides(spatial, 1), pads(2 * spatial, 0), shape = {x.shape[0], x.shape[1]};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, std::min<int64_t>(3, x.shape[i + 2]));
    if (chance(0.4)) strides[i] = 2;
    if (chance(0.4)) pads[i] = pads[i + spatial] = between(0, kernel[i] / 2);
    shape.push_back((x.shape[i + 2] + pads[i] + pads[i + spatial] - kernel[i]) / strides[i] + 1);
  }
  std::vector<Attribute> attributes = {attribute("kernel_shape", kernel), attribute("strides", strides),
                                       attribute("pads", pads)};
  if (!is_max && chance(0.3)) attributes.push_back(attribute("count_include_pad", int64_t{1}));
  if (is_max && chance(0.2)) {
    const std::vector<Edge*> outputs = nodes("MaxPool", {x.edge}, 2, attributes);
    keep(outputs[0], shape);
    if (chance(0.5)) keep(node("Cast", {outputs[1]}, {attribute("to", int64_t{1})}), shape);
    return;
  }
  keep(node(is_max ? "MaxPool" : "AveragePool", {x.edge}, attributes), shape);
}

void RandomGraph::global_pool() {
  const Item x = image();
  if (x.edge == nullptr) return;
  Item y = {node(one_of({"GlobalAveragePool", "GlobalMaxPool"}), {x.edge}), x.shape};
  std::fill(y.shape.begin() + 2, y.shape.end(), 1);
  if (chance(0.3)) {  // squeeze and excitation
    const Item z = activated(y);
    keep(node("Mul", {x.edge, z.edge}), x.shape);
    return;
  }
  keep(y.edge, y.shape);
}

void RandomGraph::resize() {
  const Item x = ranked(3, 4);
  if (x.edge == nullptr || count(x.shape) > 600) return;
  std::vector<float> scales(x.shape.size(), 1.0f);
  Shape shape = x.shape;
  for (size_t i = 2; i < scales.size(); ++i) {
    scales[i] = chance(0.7) ? 2.0f : 1.0f;
    shape[i] *= scales[i] == 2.0f ? 2 : 1;
  }
  const auto rank = static_cast<int64_t>(scales.size());
  Edge* roi = opset_ >= 13 ? nullptr : constant({0}, std::vector<float>{});
  std::vector<Edge*> inputs = {x.edge, roi};
  if (chance(0.5)) {
    inputs.push_back(constant({rank}, scales));
  } else {
    inputs.push_back(opset_ >= 13 ? nullptr : constant({0}, std::vector<float>{}));
    inputs.push_back(integers(shape));
  }
  const std::string mode = one_of({"nearest", "linear"});
  std::vector<Attribute> attributes = {attribute("mode", mode == "linear" ? "linear" : "nearest"),
                                       attribute("coordinate_transformation_mode", "asymmetric")};
  if (mode == "nearest") attributes.push_back(attribute("nearest_mode", "floor"));
  keep(node("Resize", inputs, attributes), shape);
}

// ---- shapes -----------------------------------------------------------------------------------------

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
       {product_of(Shape(x.shape.begin(), x.shape.begin() + axis)),
        product_of(Shape(x.shape.begin() + axis, x.shape.end()))});
}

// ---- pieces -----------------------------------------------------------------------------------------

void RandomGraph::concat() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = chance(0.5) && rank > 1 ? 1 : between(0, rank - 1);
  std::vector<Edge*> inputs = {x.edge};
  Shape shape = x.shape;
  for (int64_t i = between(0, 2); i >= 0; --i) {
    Item y = any([&](const Item& item) {
      if (item.shape.size() != x.shape.size()) return false;
      Shape other = item.shape;
      other[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
      return other == x.shape;
    });
    if (chance(0.2)) {
      Shape dims = x.shape;
      dims[static_cast<size_t>(axis)] = between(1, 3);
      y = {random_constant(dims), dims};
    }
    inputs.push_back(y.edge);
    shape[static_cast<size_t>(axis)] += y.shape[static_cast<size_t>(axis)];
  }
  if (chance(0.1)) inputs.resize(1), shape = x.shape;
  if (count(shape) > kMostElements) return;
  keep(node("Concat", inputs, {attribute("axis", chance(0.2) ? axis - rank : axis)}), shape);
}

void RandomGraph::split() {
  const Item x = any([](const Item& i) { return !i.shape.empty() && i.shape.size() <= 5; });
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = between(0, rank - 1), size = x.shape[static_cast<size_t>(axis)];
  if (size < 2) return;
  Shape sizes;
  for (int64_t left = size; left > 0 && sizes.size() < 3;) {
    sizes.push_back(sizes.size() == 2 ? left : between(1, left));
    left -= sizes.back();
  }
  std::vector<Attribute> attributes = {attribute("axis", chance(0.2) ? axis - rank : axis)};
  std::vector<Edge*> inputs = {x.edge};
  if (opset_ < 13) {
    attributes.push_back(attribute("split", sizes));
  } else {
    inputs.push_back(integers(sizes));
  }
  const std::vector<Edge*> outputs = nodes("Split", inputs, sizes.size(), attributes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Shape shape = x.shape;
    shape[static_cast<size_t>(axis)] = sizes[i];
    keep(outputs[i], shape);
  }
}

void RandomGraph::slice() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  Shape starts, ends, axes, steps, shape = x.shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!chance(0.5)) continue;
    const int64_t size = x.shape[i];
    if (size == 0) continue;
    int64_t from = between(0, size - 1), to = between(from + 1, size), by = chance(0.3) ? 2 : 1;
    if (chance(0.3)) from = 0, to = size;
    const auto rank = static_cast<int64_t>(x.shape.size());
    axes.push_back(chance(0.2) ? static_cast<int64_t>(i) - rank : static_cast<int64_t>(i));
    if (chance(0.15)) {  // backwards
      starts.push_back(to - 1);
      ends.push_back(from - 1 - (from == 0 ? size + 5 : 0));
      steps.push_back(-by);
    } else {
      starts.push_back(chance(0.2) ? from - size : from);
      ends.push_back(to == size ? (chance(0.5) ? int64_t{1} << 62 : to) : chance(0.2) ? to - size : to);
      steps.push_back(by);
    }
    shape[i] = (to - from + by - 1) / by;
  }
  if (axes.empty()) return;
  std::vector<Edge*> inputs = {x.edge, integers(starts), integers(ends), integers(axes)};
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; }) || chance(0.3))
    inputs.push_back(integers(steps));
  keep(node("Slice", inputs), shape);
}

void RandomGraph::pad() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const std::string mode = one_of({"constant", "constant", "reflect", "edge"});
  const size_t rank = x.shape.size();
  Shape pads(2 * rank, 0), shape = x.shape;
  for (size_t i = 0; i < rank; ++i) {
    if (!chance(0.5) || (mode == "reflect" && x.shape[i] < 2) || x.shape[i] == 0) continue;
    pads[i] = between(0, 1);
    pads[i + rank] = between(0, 1);
    if (mode == "constant" && chance(0.1) && x.shape[i] > 1) pads[i] = -1;
    shape[i] += pads[i] + pads[i + rank];
  }
  if (count(shape) > kMostElements) return;
  std::vector<Edge*> inputs = {x.edge, integers(pads)};
  if (mode == "constant" && chance(0.5)) inputs.push_back(constant({}, std::vector<float>{0.5f}));
  const char* name = mode == "constant" ? "constant" : mode == "edge" ? "edge" : "reflect";
  keep(node("Pad", inputs, {attribute("mode", name)}), shape);
}

void RandomGraph::gather() {
  const Item x = ranked(1, 4);
  if (x.edge == nullptr) return;
  const auto axis = static_cast<size_t>(between(0, static_cast<int64_t>(x.shape.size()) - 1));
  const int64_t size = x.shape[axis];
  if (size == 0) return;
  Shape indices(static_cast<size_t>(between(1, 3)));
  for (int64_t& i : indices) i = between(-size, size - 1);
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Edge* list = nullptr;
  if (chance(0.3)) {
    list = constant({}, std::vector<int64_t>{indices[0]});
  } else {
    list = integers(indices);
    shape.push_back(static_cast<int64_t>(indices.size()));
  }
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  keep(node("Gather", {x.edge, list}, {attribute("axis", static_cast<int64_t>(axis))}), shape);
}

// ---- over axes --------------------------------------------------------------------------------------

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

// ---- bodies -----------------------------------------------------------------------------------------

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
