#include "random_graph.h"

#include <algorithm>
#include <numeric>

namespace plimsoll {

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
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
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

}  // namespace plimsoll
