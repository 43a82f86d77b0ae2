#include "prepare/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "ops/invoke.h"
#include "prepare/prepared_model.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

// A model prepared and loaded without any rewrite.
struct Loaded {
  explicit Loaded(const ModelBuilder& builder, int threads = 1) : bytes(builder.bytes()), budget("test", 0) {
    PrepareOptions options;
    options.level = 0;
    options.threads = threads;
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

// A model in a file, mapped as sessions map it.
struct LoadedFile {
  explicit LoadedFile(const std::string& bytes, int level = 0, int threads = 1, bool spend_memory = false)
      : path(std::filesystem::temp_directory_path() /
             ("plimsoll_weights_" + std::to_string(::getpid()) + ".onnx")),
        budget("test", 0) {
    std::ofstream(path, std::ios::binary) << bytes;
    PrepareOptions options;
    options.level = level;
    options.threads = threads;
    options.spend_memory = spend_memory;
    model = std::make_unique<PreparedModel>(path.string(), options, budget);
    model->prepare();
  }
  ~LoadedFile() { std::filesystem::remove(path); }
  const Node& node(size_t i) { return *model->graph().nodes[i]; }

  std::filesystem::path path;
  Budget budget;
  std::unique_ptr<PreparedModel> model;
};

TEST(Weights, SmallOnesAreCopiedOutOfTheFile) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "1024"});
  Edge* small = model.constant<float>("small", {1024}, std::vector<float>(1024, 2.0f));
  Edge* large = model.constant<float>("large", {64, 1024}, std::vector<float>(64 << 10, 3.0f));
  model.output(model.node("Add", {x, small})[0]);
  model.output(model.node("Concat", {x, large}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  LoadedFile loaded(model.bytes());
  loaded.model->load_weights();
  const Weights& weights = loaded.model->weights();
  const Edge &copied = *loaded.node(0).inputs[1], &mapped = *loaded.node(1).inputs[1];
  EXPECT_NE(weights.raw(copied), copied.data->bytes.data());
  EXPECT_EQ(*reinterpret_cast<const float*>(weights.raw(copied)), 2.0f);
  const bool is_aligned = reinterpret_cast<uintptr_t>(mapped.data->bytes.data()) % 4 == 0;
  EXPECT_EQ(weights.raw(mapped) == mapped.data->bytes.data(), is_aligned);
}

// Rows of a table of 2 MiB by node 0; with `also`, node 1 takes the table as a whole.
std::string table_model(bool also) {
  ModelBuilder model;
  std::vector<float> values(size_t{4096} * 128);
  std::iota(values.begin(), values.end(), 0.0f);
  Edge* table = model.constant<float>("table", {4096, 128}, values);
  Edge* rows = model.input("rows", ElementType::kInt64, {"n"});
  model.output(model.node("Gather", {table, rows})[0]);
  if (also) model.output(model.node("ReduceMax", {table})[0]);
  return model.bytes();
}

// Products one behind the other, each with a weight of its own numbers.
void add_products(ModelBuilder& model, const std::vector<int64_t>& columns) {
  int64_t rows = 64;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "64"});
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<float> numbers(static_cast<size_t>(rows * columns[i]));
    std::iota(numbers.begin(), numbers.end(), 1000.0f * static_cast<float>(i));
    x = model.node("MatMul",
                   {x, model.constant<float>("w" + std::to_string(i), {rows, columns[i]}, numbers)})[0];
    rows = columns[i];
  }
  model.output(x);
}

TEST(Weights, WhatPassesThroughTheArenaIsPackedAsWhatIsMapped) {
  // Small and large ones in turn, and at the end two side by side of which the last finds no room there.
  ModelBuilder model;
  add_products(model, {16, 700, 64, 64, 2000, 600, 8, 700, 700, 1000});
  for (const int threads : {1, 2, 5}) {
    const Loaded mapped(model, threads);
    LoadedFile copied(model.bytes(), 0, threads);
    copied.model->load_weights();
    const Weights &expected = mapped.model->weights(), &found = copied.model->weights();
    ASSERT_GT(expected.packed_bytes(), 8 << 20);
    ASSERT_EQ(found.packed_bytes(), expected.packed_bytes());
    for (const Node* node : copied.model->graph().nodes) {
      const int64_t at = found.packed_offset(*node, 1);
      EXPECT_EQ(std::memcmp(found.packed_base() + at, expected.packed_base() + at,
                            node->inputs[1]->data->bytes.size()),
                0)
          << node->inputs[1]->name << ", threads " << threads;
    }
  }
}

TEST(Weights, AFileThatEndsEarlyIsAnErrorWhereItIsRead) {
  ModelBuilder model;
  add_products(model, {8192, 80, 8192});
  LoadedFile loaded(model.bytes());
  constexpr uintmax_t kInTheFirst = 1 << 20;
  std::filesystem::resize_file(loaded.path, kInTheFirst);
  EXPECT_THROW(loaded.model->load_weights(), Error);
}

TEST(Weights, RowsOfATableAreReadFromTheFile) {
  LoadedFile loaded(table_model(false));
  loaded.model->load_weights();
  const Node& gather = loaded.node(0);
  EXPECT_TRUE(gather.inputs[0]->by_rows);
  EXPECT_EQ(loaded.model->weights().weights_bytes(), 0);
  const int64_t indices[] = {4095, -1, 7}, dims[] = {3};
  const TensorView inputs[] = {
      gather.inputs[0]->data->view(),
      {reinterpret_cast<std::byte*>(const_cast<int64_t*>(indices)), ElementType::kInt64, false, dims}};
  BumpArena arena(loaded.budget);
  DimPool pool(arena);
  const std::vector<TensorView> outputs = invoke(gather, inputs, arena, pool);
  const float* rows = outputs[0].as<float>();
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(rows[i], static_cast<float>(4095 * 128 + i));
    EXPECT_EQ(rows[128 + i], static_cast<float>(4095 * 128 + i));
    EXPECT_EQ(rows[256 + i], static_cast<float>(7 * 128 + i));
  }
  // A file that somebody cut is an Error, where a mapped page would end the process.
  std::filesystem::resize_file(loaded.path, 1 << 20);
  EXPECT_THROW(invoke(gather, inputs, arena, pool), Error);
}

TEST(Weights, ATableThatSomebodyTakesAsAWholeIsMapped) {
  LoadedFile loaded(table_model(true));
  loaded.model->load_weights();
  EXPECT_FALSE(loaded.node(0).inputs[0]->by_rows);
  EXPECT_EQ(loaded.model->weights().weights_bytes(), 4096 * 128 * 4);
}

// Where reading rows is most of what a run does, memory may be spent on the table.
TEST(Weights, ATableWhoseRowsTakeLongLiesInMemory) {
  LoadedFile spends(table_model(false), 0, 1, true);
  spends.model->load_weights();
  EXPECT_FALSE(spends.node(0).inputs[0]->by_rows);
  EXPECT_TRUE(spends.model->spends_memory());
  EXPECT_EQ(spends.model->weights().weights_bytes(), 4096 * 128 * 4);
  LoadedFile saves(table_model(false), 0, 1, false);
  EXPECT_FALSE(saves.model->spends_memory());
}

TEST(Weights, ATableInFrontOfLargeProductsIsReadByRows) {
  ModelBuilder model;
  Edge* table = model.constant<float>("table", {4096, 128}, std::vector<float>(size_t{4096} * 128, 1.0f));
  Edge* y = model.node("Gather", {table, model.input("rows", ElementType::kInt64, {"n"})})[0];
  for (const char* name : {"a", "b"}) {
    Edge* w = model.constant<float>(name, {128, 128}, std::vector<float>(size_t{128} * 128, 1.0f));
    for (int i = 0; i < 20; ++i) y = model.node("MatMul", {y, w})[0];
  }
  model.output(y);
  LoadedFile loaded(model.bytes(), 0, 1, true);
  EXPECT_TRUE(loaded.node(0).inputs[0]->by_rows);
  EXPECT_FALSE(loaded.model->spends_memory());
}

TEST(Weights, FoldedOnesLeaveWhenTheyArePacked) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "512"});
  Edge* w = model.constant<int8_t>("w", {512, 512}, std::vector<int8_t>(512 * 512, 3));
  Edge* scale = model.constant<float>("scale", {}, {0.5f});
  model.output(model.node(
      "MatMul", {x, model.node("Mul", {model.node("Cast", {w}, 1, {ModelBuilder::integer("to", 1)})[0],
                                       scale})[0]})[0]);
  LoadedFile loaded(model.bytes(), 1);
  ASSERT_EQ(loaded.model->graph().nodes.size(), 1u);
  const int64_t folded = 512 * 512 * 4;
  EXPECT_GE(loaded.model->weights().passing_bytes(), folded);
  const int64_t told = loaded.model->memory_bytes(),
                before = loaded.budget.report()[Account::kSession].now_bytes;
  loaded.model->load_weights();
  EXPECT_EQ(loaded.model->memory_bytes(), told);
  EXPECT_LE(loaded.budget.report()[Account::kSession].now_bytes, before - folded);
}

// Mappings lie side by side as the system likes: what begins where another ends does not keep it.
TEST(Weights, FoldedOnesLeaveWhateverLiesBesideThem) {
  constexpr int kPairs = 8;
  ModelBuilder model;
  Edge* scale = model.constant<float>("scale", {}, {0.5f});
  const auto folded = [&](const std::string& name) {
    Edge* w = model.constant<int8_t>(name, {512, 512}, std::vector<int8_t>(512 * 512, 3));
    return model.node("Mul", {model.node("Cast", {w}, 1, {ModelBuilder::integer("to", 1)})[0], scale})[0];
  };
  Edge* x = model.input("x", ElementType::kFloat, {"512", "512"});
  for (int i = 0; i < kPairs; ++i) {
    Edge* read = folded("r" + std::to_string(i));
    x = model.node("Max", {model.node("MatMul", {x, folded("p" + std::to_string(i))})[0], read})[0];
  }
  model.output(x);
  LoadedFile loaded(model.bytes(), 1);
  ASSERT_EQ(loaded.model->graph().nodes.size(), 2u * kPairs);
  EXPECT_GE(loaded.model->weights().passing_bytes(), kPairs * 512 * 512 * 4);
}

}  // namespace
}  // namespace plimsoll
