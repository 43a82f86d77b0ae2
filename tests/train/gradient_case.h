// The bench of gradients: one operator, its inputs and attributes; the gradient that the engine makes against
// central differences, in double.
//
//   GradientCase("Gemm").input({2, 3}).input({3, 4}).attr("alpha", 0.5f).check();
//
// Inputs of `input` are random doubles that are differentiated; `fixed` ones are constants of the model and
// `given` ones are handed to the run, both are not. All float outputs are multiplied by random cotangents and
// summed, so that one number depends on all of them. check() runs the model as a file through Session,
// without optimization and with all of it (passes proven, memory poisoned), then in float, whose gradients
// must agree. Add a case: one line in tests/train/<family>_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "graph/gradient.h"
#include "memory/bump_arena.h"
#include "onnx/writer.h"
#include "plimsoll/session.h"

namespace plimsoll {

// A body of the node under test, while it is written. The node's inputs are `outer`, by their number in the
// case.
struct BodyCase {
  Graph& graph;
  GraphBuilder& build;
  ElementType type;  // what differentiated inputs are of in this run
  const std::vector<Edge*>& outer;

  Edge* input(const std::string& name, ElementType of, const std::vector<int64_t>& dims);
  Edge* input(const std::string& name, const std::vector<int64_t>& dims) { return input(name, type, dims); }
  void output(Edge* edge) { graph.outputs.push_back(edge); }
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs) {
    return build.op(op_type, inputs);
  }
  Edge* real(double value) { return real_scalar(build, type, value); }
};

class GradientCase {
 public:
  explicit GradientCase(std::string op, int opset = kGradientOpset, std::string domain = "")
      : op_(std::move(op)), domain_(std::move(domain)), opset_(opset) {}

  // Random values between `low` and `high`, never closer than 0.01 to a whole multiple of 0.5 (where kinks
  // are).
  GradientCase& input(const std::vector<int64_t>& dims, double low = -2, double high = 2) {
    std::vector<double> values(count(dims));
    for (double& v : values) v = draw(low, high);
    return at(dims, values);
  }
  // At these values.
  GradientCase& at(const std::vector<int64_t>& dims, const std::vector<double>& values) {
    inputs_.push_back({Kind::kDifferentiated, ElementType::kDouble, dims, {}, values});
    return *this;
  }
  // Random values, all different: for what sorts or chooses.
  GradientCase& distinct(const std::vector<int64_t>& dims) {
    std::vector<double> values(count(dims));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (static_cast<double>(i) + 0.3) / static_cast<double>(values.size()) * 4 - 2;
    std::shuffle(values.begin(), values.end(), random_);
    return at(dims, values);
  }
  template <typename T>
  GradientCase& fixed(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    return other(Kind::kConstant, dims, values);
  }
  template <typename T>
  GradientCase& given(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    return other(Kind::kGiven, dims, values);
  }
  GradientCase& absent() {
    inputs_.push_back({Kind::kAbsent, {}, {}, {}, {}});
    return *this;
  }
  // The last input is not handed to the node: its bodies use it.
  GradientCase& captured() {
    inputs_.back().captured = true;
    return *this;
  }
  GradientCase& body(const std::string& name, std::function<void(BodyCase&)> write) {
    bodies_.push_back({name, std::move(write)});
    return *this;
  }
  // Declares dimension `axis` of the last input as a symbol.
  GradientCase& symbol(size_t axis, const std::string& name) {
    inputs_.back().symbols.push_back({axis, name});
    return *this;
  }

  GradientCase& attr(std::string_view name, int64_t value) {
    Attribute& a = add(name, AttributeType::kInt);
    a.i = value;
    return *this;
  }
  GradientCase& attr(std::string_view name, float value) {
    Attribute& a = add(name, AttributeType::kFloat);
    a.f = value;
    return *this;
  }
  GradientCase& attr(std::string_view name, const char* value) {
    Attribute& a = add(name, AttributeType::kString);
    a.s = value;
    return *this;
  }
  GradientCase& attr(std::string_view name, const std::vector<int64_t>& values) {
    Attribute& a = add(name, AttributeType::kInts);
    a.ints = arena_.copy(values);
    return *this;
  }
  GradientCase& attr(std::string_view name, const std::vector<float>& values) {
    Attribute& a = add(name, AttributeType::kFloats);
    a.floats = arena_.copy(values);
    return *this;
  }
  GradientCase& attr(std::string_view name, const std::vector<std::string>& values) {
    Attribute& a = add(name, AttributeType::kStrings);
    std::vector<std::string_view> kept;
    for (const std::string& value : values) kept.push_back(arena_.copy(std::string_view(value)));
    a.strings = arena_.copy(kept);
    return *this;
  }
  // How many outputs the node has, and which of them are there (default all) and weighted.
  GradientCase& outputs(size_t number) {
    outputs_.assign(number, true);
    return *this;
  }
  GradientCase& unused_output(size_t i) {
    outputs_.at(i) = false;
    return *this;
  }
  // Without the run in float, where that overflows or is not implemented.
  GradientCase& only_double() {
    in_float_ = false;
    return *this;
  }
  void check(double tolerance = 1e-6);
  // That differentiating is refused with these words.
  void expect_refused(const std::string& words);

 private:
  enum class Kind { kDifferentiated, kConstant, kGiven, kAbsent };
  struct Symbol {
    size_t axis;
    std::string name;
  };
  struct Input {
    Kind kind;
    ElementType type;
    std::vector<int64_t> dims;
    std::vector<std::byte> bytes;  // of those that are not differentiated
    std::vector<double> values;    // of those that are
    std::vector<Symbol> symbols = {};
    bool captured = false;
  };
  struct Body {
    std::string name;
    std::function<void(BodyCase&)> write;
  };
  struct Result {
    double y = 0;
    std::vector<std::vector<double>> gradients;
  };

  static size_t count(const std::vector<int64_t>& dims) {
    size_t n = 1;
    for (int64_t d : dims) n *= static_cast<size_t>(d);
    return n;
  }
  double draw(double low, double high);
  template <typename T>
  GradientCase& other(Kind kind, const std::vector<int64_t>& dims, const std::vector<T>& values) {
    Input input{kind, element_type_of<T>(), dims, {}, {}};
    for (const T& value : values) {
      const auto bytes = std::as_bytes(std::span<const T>(&value, 1));
      input.bytes.insert(input.bytes.end(), bytes.begin(), bytes.end());
    }
    inputs_.push_back(input);
    return *this;
  }
  Attribute& add(std::string_view name, AttributeType type) {
    Attribute& a = attributes_.emplace_back();
    a.name = name, a.type = type;
    return a;
  }
  std::string model(ElementType type);
  Graph* write_body(Graph& graph, const Body& body, ElementType type, const std::vector<Edge*>& outer);
  TypeInfo declared(const Input& input, ElementType type, DimPool& pool);
  static Session open(const std::string& bytes, bool optimized);
  Result run(Session& session, ElementType type, bool with_gradients = true);
  void compare_differences(Session& session, const Result& found, double tolerance);

  std::string op_, domain_;
  int opset_;
  Budget budget_{"test", 0};
  BumpArena arena_{budget_};
  std::mt19937 random_{7};
  std::vector<Input> inputs_;
  std::vector<Attribute> attributes_;
  std::vector<Body> bodies_;
  std::vector<bool> outputs_ = {true};
  bool in_float_ = true;
};

}  // namespace plimsoll
