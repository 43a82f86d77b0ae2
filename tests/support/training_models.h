// Forward and backward written by hand, for what is planned and run before anything is differentiated: a
// tape of a few operators whose gradients are plain ONNX.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/model_builder.h"

namespace plimsoll {

class Tape {
 public:
  ModelBuilder model;

  Edge* input(const std::string& name, const std::vector<std::string>& dims) {
    return model.input(name, ElementType::kFloat, dims);
  }
  Edge* weight(int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (float& v : values) {
      state_ = state_ * 1664525u + 1013904223u;
      v = (static_cast<float>(state_ >> 8) / static_cast<float>(1 << 24) - 0.5f) * 0.2f;
    }
    return model.constant<float>("w" + std::to_string(next_++), {rows, columns}, values);
  }
  Edge* op(const std::string& type, const std::vector<Edge*>& inputs,
           const std::vector<Attribute>& list = {}) {
    return model.node(type, inputs, 1, list)[0];
  }
  Edge* transposed(Edge* x, std::vector<int64_t> perm) {
    perms_.push_back(std::move(perm));
    return op("Transpose", {x}, {ModelBuilder::integers("perm", perms_.back())});
  }

  // [.., k] x [k, n]; rows are one dimension.
  Edge* linear(Edge* x, int64_t from, int64_t to) {
    Edge* w = weight(from, to);
    Edge* y = op("MatMul", {x, w});
    back_.push_back([=, this] {
      add(x, op("MatMul", {gradient(y), transposed(w, {1, 0})}));
      model.output(op("MatMul", {transposed(x, {1, 0}), gradient(y)}));
    });
    return y;
  }
  Edge* tanh(Edge* x) {
    Edge* y = op("Tanh", {x});
    back_.push_back([=, this] { add(x, op("Mul", {gradient(y), op("Sub", {one(), op("Mul", {y, y})})})); });
    return y;
  }
  Edge* add_up(Edge* a, Edge* b) {
    Edge* y = op("Add", {a, b});
    back_.push_back([=, this] { add(a, gradient(y)), add(b, gradient(y)); });
    return y;
  }
  // Keeps half of the elements, the same in every run of one seed.
  Edge* dropout(Edge* x) {
    Edge* half = model.constant<float>("ratio" + std::to_string(next_++), {}, {0.5f});
    Edge* training = model.constant<bool>("training" + std::to_string(next_++), {}, {true});
    const std::vector<Edge*> made = model.node("Dropout", {x, half, training}, 2);
    back_.push_back([=, this] {
      Attribute to = ModelBuilder::integer("to", 1);
      add(x, op("Mul", {op("Mul", {gradient(made[0]), op("Cast", {made[1]}, {to})}),
                        model.constant<float>("two" + std::to_string(next_++), {}, {2.0f})}));
    });
    return made[0];
  }
  Edge* softmax(Edge* x) {
    Edge* y = op("Softmax", {x}, {ModelBuilder::integer("axis", -1)});
    back_.push_back([=, this] {
      Edge* product = op("Mul", {gradient(y), y});
      Edge* sum = model.node(
          "ReduceSum", {product, model.constant<int64_t>("axes" + std::to_string(next_++), {1}, {-1})})[0];
      add(x, op("Sub", {product, op("Mul", {y, sum})}));
    });
    return y;
  }
  // a x b^T and a x b, of matrices.
  Edge* product(Edge* a, Edge* b, bool transpose) {
    Edge* y = transpose ? op("MatMul", {a, transposed(b, {1, 0})}) : op("MatMul", {a, b});
    back_.push_back([=, this] {
      Edge* d = gradient(y);
      add(a, op("MatMul", {d, transpose ? b : transposed(b, {1, 0})}));
      add(b, transpose ? op("MatMul", {transposed(d, {1, 0}), a}) : op("MatMul", {transposed(a, {1, 0}), d}));
    });
    return y;
  }
  // One head of attention and a layer of two products, around both of which the stream goes on.
  Edge* block(Edge* x, int64_t width, bool with_dropout = false) {
    Edge *q = linear(x, width, width), *k = linear(x, width, width), *v = linear(x, width, width);
    Edge* scores = softmax(product(q, k, true));
    if (with_dropout) scores = dropout(scores);
    x = add_up(x, linear(product(scores, v, false), width, width));
    Edge* inner = tanh(linear(x, width, 4 * width));
    return add_up(x, linear(inner, 4 * width, width));
  }

  // The sum of the squares of `y` is the loss; everything else is behind it.
  std::string finish(Edge* y) {
    Edge* squares = op("Mul", {y, y});
    Edge* axes = model.constant<int64_t>("all", {2}, {0, 1});
    model.output(model.node("ReduceSum", {squares, axes})[0]);
    gradients_[y] = op("Add", {y, y});
    for (size_t i = back_.size(); i-- > 0;) back_[i]();
    return model.bytes();
  }

 private:
  Edge* one() { return model.constant<float>("one" + std::to_string(next_++), {}, {1.0f}); }
  Edge* gradient(Edge* of) { return gradients_.at(of); }
  void add(Edge* to, Edge* more) {
    Edge*& sum = gradients_[to];
    sum = sum == nullptr ? more : op("Add", {sum, more});
  }

  std::map<Edge*, Edge*> gradients_;
  std::vector<std::function<void()>> back_;
  std::vector<std::vector<int64_t>> perms_;
  uint32_t state_ = 1;
  int next_ = 0;
};

inline std::string chain_step(int depth, int64_t width) {
  Tape tape;
  tape.model.graph().ir_version = 8;
  Edge* x = tape.input("x", {"rows", std::to_string(width)});
  for (int i = 0; i < depth; ++i) x = tape.tanh(tape.linear(x, width, width));
  return tape.finish(x);
}

inline std::string transformer_step(int layers, int64_t width, bool with_dropout = false) {
  Tape tape;
  Edge* x = tape.input("x", {"rows", std::to_string(width)});
  for (int i = 0; i < layers; ++i) x = tape.block(x, width, with_dropout);
  return tape.finish(x);
}

// Long ways around: what is made early is added in late, in reverse order.
inline std::string skip_model(int depth, int64_t width) {
  Tape tape;
  Edge* x = tape.input("x", {"rows", std::to_string(width)});
  std::vector<Edge*> early;
  for (int i = 0; i < depth; ++i)
    early.push_back(x = tape.op("Tanh", {tape.op("MatMul", {x, tape.weight(width, width)})}));
  for (int i = depth; i-- > 0;)
    x = tape.op(
        "Tanh",
        {tape.op("Add", {tape.op("MatMul", {x, tape.weight(width, width)}), early[static_cast<size_t>(i)]})});
  tape.model.output(x);
  return tape.model.bytes();
}

}  // namespace plimsoll
