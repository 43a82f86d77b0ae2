// Valid models made by chance from what the passes look for, and from what stands beside it.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plimsoll/session.h"
#include "support/model_builder.h"

namespace plimsoll {

// A model of at most `steps` random steps. The same seed with fewer steps is the beginning of the same model,
// so that what fails can be made small.
class RandomGraph {
 public:
  RandomGraph(uint32_t seed, int steps);

  std::string bytes() const { return write_model_bytes(*graph_); }
  // One per input of the model, in order.
  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  int opset() const { return opset_; }
  std::string describe() const;

 private:
  using Shape = std::vector<int64_t>;
  static constexpr int64_t kMostElements = 3000;  // of one tensor, so that a graph takes a moment only
  // A float tensor that a step may use.
  struct Item {
    Edge* edge = nullptr;
    Shape shape;
  };

  // ---- chance
  int64_t between(int64_t low, int64_t high);
  bool chance(double probability);
  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(between(0, static_cast<int64_t>(list.size()) - 1))];
  }
  std::string one_of(std::initializer_list<const char*> list);
  Shape random_shape(int64_t low_rank, int64_t high_rank);
  Shape random_permutation(size_t rank);

  // ---- parts
  void add_input();
  Edge* constant(const Shape& dims, const std::vector<float>& values);
  Edge* constant(const Shape& dims, const std::vector<int64_t>& values);
  Edge* integers(const std::vector<int64_t>& values);
  Edge* scalar(float value);
  Edge* random_constant(const Shape& dims, float low = -1, float high = 1);
  template <typename T>
  Edge* make_constant(const Shape& dims, const std::vector<T>& values);
  Attribute attribute(const char* name, int64_t value);
  Attribute attribute(const char* name, float value);
  Attribute attribute(const char* name, const char* value);
  Attribute attribute(const char* name, const std::vector<int64_t>& values);
  std::vector<Edge*> nodes(const std::string& op, const std::vector<Edge*>& inputs, size_t outputs,
                           const std::vector<Attribute>& attributes = {});
  Edge* node(const std::string& op, const std::vector<Edge*>& inputs,
             const std::vector<Attribute>& attributes = {}) {
    return nodes(op, inputs, 1, attributes)[0];
  }
  Item any() {
    return any([](const Item&) { return true; });
  }
  // Later ones are likelier, so that chains come about. Edge is null if there is none.
  Item any(const std::function<bool(const Item&)>& fits);
  Item ranked(size_t low, size_t high);
  Item image();
  void keep(Edge* edge, Shape shape);
  // A constant that broadcasts to the shape without changing it.
  Edge* broadcast_constant(const Shape& shape, float low, float high);
  Edge* per_channel(const Shape& shape, float low, float high);
  static Shape broadcast(const Shape& a, const Shape& b);
  static bool broadcasts(const Shape& a, const Shape& b);
  static int64_t count(const Shape& shape);

  // ---- steps
  void step();
  void unary();
  Item activated(Item x);
  void binary();
  void transpose();
  Item transposed(const Item& x);
  void matmul();
  void linear();
  void gemm();
  void attention();
  void conv();
  void conv_block();
  void mobile_block();
  Item convolved(const Item& x);
  Item normalized(const Item& x);
  void conv_transpose();
  void batch_normalization();
  void affine();
  void pool();
  void global_pool();
  void reshape();
  void computed_reshape();
  void squeeze();
  void unsqueeze();
  void flatten();
  void concat();
  void split();
  void slice();
  void pad();
  void softmax();
  void layer_normalization();
  void gelu();
  void hard_swish();
  void silu();
  void reduce();
  void expand();
  void gather();
  void resize();
  void shape_arithmetic();
  void where();
  void dropout();
  void residual();
  void branch();
  Edge* branch_result(const Item& x, Graph& body);
  Edge* dimension(const Item& x, size_t axis);

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  std::unique_ptr<Graph> graph_;
  Graph* current_ = nullptr;
  int depth_ = 0;
  OpsetImport imports_[1];
  int opset_ = 0;
  std::mt19937 random_;
  std::vector<Item> items_;
  std::vector<Value> inputs_;
  std::vector<std::string> input_names_, output_names_;
  int next_ = 0;
};

}  // namespace plimsoll
