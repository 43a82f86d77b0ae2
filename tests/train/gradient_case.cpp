#include "train/gradient_case.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "graph/infer.h"
#include "ops/registry.h"
#include "ops/training_common.h"

namespace plimsoll {
namespace {

constexpr double kStep = 1e-6;
constexpr size_t kMostElements = 24;  // of an input, that are moved

Value tensor_of(ElementType type, const std::vector<int64_t>& dims, const std::vector<double>& values) {
  Value value = Value::CreateTensor(type, dims);
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == ElementType::kDouble) value.GetTensorMutableData<double>()[i] = values[i];
    if (type == ElementType::kFloat) value.GetTensorMutableData<float>()[i] = static_cast<float>(values[i]);
  }
  return value;
}

std::vector<double> reals_of(const Value& value, ElementType type) {
  std::vector<double> values(value.GetElementCount());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = type == ElementType::kDouble ? value.GetTensorData<double>()[i]
                                             : double{value.GetTensorData<float>()[i]};
  return values;
}

std::string name_of(size_t i) {
  return "x" + std::to_string(i);
}

}  // namespace

double GradientCase::draw(double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  for (;;) {
    const double value = uniform(random_);
    if (std::abs(value * 2 - std::round(value * 2)) > 0.02) return value;
  }
}

TypeInfo GradientCase::declared(const Input& input, ElementType type, DimPool& pool) {
  std::vector<Dim> dims(input.dims.begin(), input.dims.end());
  for (const Symbol& symbol : input.symbols) dims.at(symbol.axis) = pool.symbol(symbol.name);
  return {ValueKind::kTensor,      input.kind == Kind::kDifferentiated ? type : input.type,
          ElementType::kUndefined, true,
          arena_.copy(dims),       nullptr};
}

Edge* BodyCase::input(const std::string& name, ElementType of, const std::vector<int64_t>& dims) {
  Edge* edge = graph.add_edge(std::string(graph.name) + "/" + name);
  std::vector<Dim> sizes(dims.begin(), dims.end());
  edge->facts.type = {ValueKind::kTensor,        of,     ElementType::kUndefined, true,
                      graph.arena().copy(sizes), nullptr};
  graph.inputs.push_back(edge);
  return edge;
}

Graph* GradientCase::write_body(Graph& graph, const Body& body, ElementType type,
                                const std::vector<Edge*>& outer) {
  Graph* made = arena_.make<Graph>(graph);
  made->name = arena_.copy(body.name);
  GraphBuilder build(*made, body.name, resolve);
  BodyCase c{*made, build, type, outer};
  body.write(c);
  return made;
}

// Inputs, the node, y = the sum of outputs times cotangents, and Gradient.
std::string GradientCase::model(ElementType type) {
  DimPool pool(arena_);
  Graph graph(arena_, pool);
  const OpsetImport imports[] = {{"", domain_.empty() ? opset_ : kGradientOpset},
                                 {kTrainingDomain, 1},
                                 {domain_.empty() ? kPlimsollDomain : std::string_view(domain_), 1}};
  graph.opsets = imports;
  graph.ir_version = 10;
  graph.name = "test";
  std::vector<Edge*> inputs, xs;
  std::vector<std::string_view> names;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    inputs.push_back(input.kind == Kind::kAbsent ? nullptr : graph.add_edge(name_of(i)));
    if (input.kind == Kind::kAbsent) continue;
    Edge* edge = inputs.back();
    edge->facts.type = declared(input, type, pool);
    if (input.kind == Kind::kConstant) {
      TensorData data;
      data.type = input.type;
      data.dims = arena_.copy(input.dims);
      data.bytes = arena_.copy(input.bytes);
      edge->set_data(arena_, data);
      graph.initializers.push_back(edge);
      continue;
    }
    graph.inputs.push_back(edge);
    if (input.kind != Kind::kDifferentiated) continue;
    xs.push_back(edge);
    names.push_back(edge->name);
  }
  std::vector<Edge*> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs.push_back(graph.add_edge("out" + std::to_string(i)));
  std::vector<Attribute> all = attributes_;
  for (const Body& body : bodies_) {
    Attribute& attribute = all.emplace_back();
    attribute.name = body.name, attribute.type = AttributeType::kGraph;
    attribute.graph = write_body(graph, body, type, inputs);
  }
  std::vector<Edge*> handed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs_[i].captured) handed.push_back(inputs[i]);
  }
  Node* node = graph.add_node(domain_, op_, "node", handed, outputs, all);
  resolve(*node, arena_);
  GraphBuilder build(graph, "loss", resolve);
  infer_graph(graph);
  Edge* y = nullptr;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Facts& facts = outputs[i]->facts;
    if (!outputs_[i] || facts.type.type != type) continue;
    Edge* weight = build.op("RandomUniformLike", {outputs[i]},
                            build.attributes()
                                .set("seed", static_cast<float>(i + 1))
                                .set("low", 0.5f)
                                .set("high", 1.5f)
                                .set("dtype", static_cast<int64_t>(ElementType::kFloat)));
    weight = build.op("Cast", {weight}, build.attributes().set("to", static_cast<int64_t>(type)));
    // Without axes: all of them, in every version.
    Edge* sum = build.op("ReduceSum", {build.op("Mul", {outputs[i], weight})},
                         build.attributes().set("keepdims", int64_t{0}));
    y = y == nullptr ? sum : build.op("Add", {y, sum});
  }
  Edge* named_y[] = {graph.add_edge("y")};
  build.emit_into(named_y, "", "Identity", {&y, 1}, {});
  graph.outputs.push_back(named_y[0]);
  std::vector<Edge*> gradients;
  for (Edge* x : xs) gradients.push_back(graph.add_edge(std::string("d_") + std::string(x->name)));
  Attribute of_xs, of_y;
  of_xs.name = "xs", of_xs.type = AttributeType::kStrings, of_xs.strings = names;
  of_y.name = "y", of_y.type = AttributeType::kString, of_y.s = "y";
  const Attribute attributes[] = {of_xs, of_y};
  Node* gradient = graph.add_node(kTrainingDomain, "Gradient", "gradient", xs, gradients, attributes);
  resolve(*gradient, arena_);
  infer_outputs(*gradient);
  for (Edge* edge : gradients) graph.outputs.push_back(edge);
  return write_model_bytes(graph);
}

Session GradientCase::open(const std::string& bytes, bool optimized) {
  SessionOptions options;
  options.optimization_level = optimized ? GraphOptimizationLevel::kAll : GraphOptimizationLevel::kDisableAll;
  options.intra_op_threads = optimized ? 2 : 1;
  options.check_passes = true;
  options.poison = true;
  return Session(Env(), bytes.data(), bytes.size(), options);
}

GradientCase::Result GradientCase::run(Session& session, ElementType type, bool with_gradients) {
  std::vector<std::string> names;
  std::vector<Value> values;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (input.kind == Kind::kAbsent || input.kind == Kind::kConstant) continue;
    names.push_back(name_of(i));
    if (input.kind == Kind::kDifferentiated) {
      values.push_back(tensor_of(type, input.dims, input.values));
    } else {
      values.push_back(Value::CreateTensor(input.type, input.dims, const_cast<std::byte*>(input.bytes.data()),
                                           input.bytes.size()));
    }
  }
  std::vector<std::string> wanted;
  for (const ValueInfo& info : session.GetOutputs()) {
    if (with_gradients || info.name == "y") wanted.push_back(info.name);
  }
  RunOptions options;
  const std::vector<Value> found = session.Run(options, names, values, wanted);
  Result result;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<double> reals = reals_of(found[i], type);
    if (wanted[i] == "y") {
      result.y = reals.at(0);
    } else {
      result.gradients.push_back(std::move(reals));
    }
  }
  return result;
}

void GradientCase::compare_differences(Session& session, const Result& found, double tolerance) {
  size_t next = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind != Kind::kDifferentiated) continue;
    const std::vector<double>& gradient = found.gradients.at(next++);
    ASSERT_EQ(gradient.size(), inputs_[i].values.size());
    std::vector<size_t> elements(gradient.size());
    for (size_t k = 0; k < elements.size(); ++k) elements[k] = k;
    std::shuffle(elements.begin(), elements.end(), random_);
    elements.resize(std::min(elements.size(), kMostElements));
    for (size_t k : elements) {
      double& x = inputs_[i].values[k];
      const double before = x, step = kStep * std::max(1.0, std::abs(x));
      x = before + step;
      const double above = run(session, ElementType::kDouble, false).y;
      x = before - step;
      const double below = run(session, ElementType::kDouble, false).y;
      x = before;
      const double difference = (above - below) / (2 * step);
      EXPECT_NEAR(gradient[k], difference, tolerance * std::max(1.0, std::abs(difference)))
          << op_ << ": input " << i << ", element " << k << ", at " << before;
    }
  }
}

void GradientCase::check(double tolerance) {
  SCOPED_TRACE(op_);
  const std::string bytes = model(ElementType::kDouble);
  Session plain = open(bytes, false);
  Session optimized = open(bytes, true);
  const Result first = run(plain, ElementType::kDouble), second = run(optimized, ElementType::kDouble);
  compare_differences(plain, first, tolerance);
  for (size_t i = 0; i < first.gradients.size(); ++i)
    EXPECT_THAT(second.gradients[i], testing::Pointwise(testing::DoubleNear(1e-9), first.gradients[i]))
        << "with and without optimization, input " << i;
  if (!in_float_ || testing::Test::HasFailure()) return;
  const std::string float_bytes = model(ElementType::kFloat);
  Session floats = open(float_bytes, true);
  const Result rounded = run(floats, ElementType::kFloat);
  for (size_t i = 0; i < first.gradients.size(); ++i) {
    for (size_t k = 0; k < first.gradients[i].size(); ++k)
      EXPECT_NEAR(rounded.gradients[i][k], first.gradients[i][k],
                  1e-3 * std::max(1.0, std::abs(first.gradients[i][k])))
          << "in float: input " << i << ", element " << k;
  }
}

void GradientCase::expect_refused(const std::string& words) {
  const std::string bytes = model(ElementType::kDouble);
  try {
    open(bytes, true);
    FAIL() << op_ << " was differentiated";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
  }
}

}  // namespace plimsoll
