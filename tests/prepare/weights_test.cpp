#include "prepare/weights.h"

#include <gtest/gtest.h>

#include "prepare/prepared_model.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

// A model prepared and loaded without any rewrite.
struct Loaded {
  explicit Loaded(const ModelBuilder& builder) : bytes(builder.bytes()), budget("test", 0) {
    PrepareOptions options;
    options.level = 0;
    model = std::make_unique<PreparedModel>(std::as_bytes(std::span<const char>(bytes)), options, budget);
    model->prepare();
    model->load_weights();
  }
  const Node& node(size_t i) { return *model->graph().nodes[i]; }
  const std::byte* packed(size_t i) {
    return model->weights().packed_base() + model->weights().packed_offset(node(i), 1);
  }
  bool is_packed(size_t i) { return model->weights().is_packed(node(i), 1); }
  int64_t bytes_packed() { return model->weights().packed_bytes(); }

  std::string bytes;
  Budget budget;
  std::unique_ptr<PreparedModel> model;
};

// One node for each x, all with the same weight.
Loaded sharing(const std::string& op, const std::vector<int64_t>& weight,
               const std::vector<std::vector<std::string>>& xs,
               const std::vector<std::vector<Attribute>>& attributes) {
  ModelBuilder model;
  int64_t count = 1;
  for (int64_t d : weight) count *= d;
  Edge* w = model.constant<float>("w", weight, std::vector<float>(static_cast<size_t>(count), 0.5f));
  for (size_t i = 0; i < xs.size(); ++i) {
    Edge* x = model.input("x" + std::to_string(i), ElementType::kFloat, xs[i]);
    model.output(model.node(op, {x, w}, 1, attributes[i])[0]);
  }
  return Loaded(model);
}

constexpr int64_t kTwo[] = {2, 2};

TEST(Weights, NodesThatNameTheSameFormatShareOneCopy) {
  Loaded one = sharing("MatMul", {64, 64}, {{"n", "64"}}, {{}});
  Loaded two = sharing("MatMul", {64, 64}, {{"n", "64"}, {"3", "m", "64"}}, {{}, {}});
  EXPECT_EQ(one.bytes_packed(), 64 * 64 * 4);
  EXPECT_EQ(two.bytes_packed(), 64 * 64 * 4);
  EXPECT_EQ(two.packed(0), two.packed(1));

  // Strides and dilations are not part of a convolution's format.
  const std::vector<Attribute> strided = {ModelBuilder::integers("strides", kTwo)},
                               dilated = {ModelBuilder::integers("dilations", kTwo)};
  Loaded convs =
      sharing("Conv", {32, 32, 2, 2}, {{"n", "32", "h", "w"}, {"n", "32", "9", "9"}, {"1", "32", "8", "8"}},
              {{}, strided, dilated});
  EXPECT_EQ(convs.bytes_packed(), 32 * 32 * 4 * 4);
  EXPECT_EQ(convs.packed(0), convs.packed(1));
  EXPECT_EQ(convs.packed(0), convs.packed(2));
}

TEST(Weights, AnotherFormatIsAnotherCopy) {
  Loaded gemms = sharing("Gemm", {64, 64}, {{"n", "64"}, {"n", "64"}, {"n", "64"}},
                         {{}, {ModelBuilder::integer("transB", 1)}, {}});
  EXPECT_EQ(gemms.bytes_packed(), 2 * 64 * 64 * 4);
  EXPECT_NE(gemms.packed(0), gemms.packed(1));
  EXPECT_EQ(gemms.packed(0), gemms.packed(2));

  // Dense over one channel, and depthwise over 64.
  Loaded convs = sharing("Conv", {64, 1, 4, 4}, {{"n", "1", "h", "w"}, {"n", "64", "h", "w"}},
                         {{}, {ModelBuilder::integer("group", 64)}});
  EXPECT_EQ(convs.bytes_packed(), 2 * 64 * 16 * 4);
  EXPECT_NE(convs.packed(0), convs.packed(1));
}

TEST(Weights, WhatANodeMakesStaysRaw) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "64"});
  Edge* w = model.input("w", ElementType::kFloat, {"64", "64"});
  model.output(model.node("MatMul", {x, model.node("Exp", {w})[0]})[0]);
  Loaded loaded(model);
  EXPECT_FALSE(loaded.is_packed(1));
  EXPECT_EQ(loaded.bytes_packed(), 0);
}

TEST(Weights, AConcreteShapeMustNameTheFormatOfLoad) {
  Loaded loaded = sharing("MatMul", {64, 64}, {{"n", "64"}}, {{}});
  const Weights& weights = loaded.model->weights();
  struct : PackPolicy {
    bool pack(const Node&, size_t, const PackFormat& f, int64_t b) const override {
      format = f, bytes = b;
      return true;
    }
    mutable PackFormat format;
    mutable int64_t bytes = 0;
  } asked;
  const Node& node = loaded.node(0);
  std::vector<Facts> inputs = {node.inputs[0]->facts, node.inputs[1]->facts},
                     outputs = {node.outputs[0]->facts};
  Budget budget("test", 0);
  BumpArena arena(budget);
  SelectContext select(node, inputs, outputs, &asked, 1, arena);
  node.op->select(select);
  EXPECT_TRUE(weights.pack(node, 1, asked.format, asked.bytes));
  asked.format.numbers[7] = 1;
  EXPECT_THROW(weights.pack(node, 1, asked.format, asked.bytes), std::logic_error);
}

}  // namespace
}  // namespace plimsoll
