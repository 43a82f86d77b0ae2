#include "plimsoll/model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "plimsoll/error.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

class ModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll.XXXXXX").string();
    room_ = ::mkdtemp(name.data());
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"2", "512"});
    Edge* w = model.constant<float>("w", {512, 512}, std::vector<float>(512 * 512, 0.5f));
    model.output(model.node("MatMul", {model.node("Exp", {x})[0], w})[0]);
    path_ = room_ / "model.onnx";
    std::ofstream(path_) << model.bytes();
  }
  void TearDown() override { std::filesystem::remove_all(room_); }
  std::string pipe() const {
    const std::string name = room_ / "pipe";
    ::mkfifo(name.c_str(), 0600);
    return name;
  }
  std::filesystem::path room_, path_;
};

}  // namespace

// With fixed shapes the formula is a number. Here loading, which holds the raw weight and its packed form,
// decides. The plan's own tables are not in the formula.
TEST_F(ModelFiles, FormulaCoversLoading) {
  const Plan plan = Model(Env(), path_, SessionOptions().SetIntraOpNumThreads(1)).MakePlan();
  const int64_t told = std::stoll(plan.formula);
  EXPECT_GE(told, 2 * 512 * 512 * 4);
  EXPECT_LE(told, plan.lower_bound_bytes);
  EXPECT_GE(told, plan.lower_bound_bytes - (64 << 10));
}

// Gelu came with opset 20: a file that imports less keeps what Gelu was made of.
TEST_F(ModelFiles, SavedModelsHaveOperatorsOfTheirOpsetOnly) {
  for (const int opset : {13, 20}) {
    ModelBuilder model(opset);
    Edge* x = model.input("x", ElementType::kFloat, {"2", "8"});
    Edge* root = model.constant<float>("root", {}, {1.41421356f});
    Edge* one = model.constant<float>("one", {}, {1.0f});
    Edge* half = model.constant<float>("half", {}, {0.5f});
    Edge* erf = model.node("Erf", {model.node("Div", {x, root})[0]})[0];
    Edge* product = model.node("Mul", {x, model.node("Add", {erf, one})[0]})[0];
    model.output(model.node("Mul", {product, half})[0]);
    const std::string from = room_ / "from.onnx", to = room_ / "to.onnx";
    std::ofstream(from) << model.bytes();
    Model(Env(), from, SessionOptions()).Save(to);
    const ModelInfo info = Model(Env(), to, SessionOptions()).GetInfo();
    EXPECT_EQ(info.operators.count("Gelu"), opset == 20 ? 1u : 0u) << opset;
    EXPECT_EQ(info.operators.count("Erf"), opset == 20 ? 0u : 1u) << opset;
    EXPECT_EQ(info.opsets.at("ai.onnx"), opset);
  }
}

TEST_F(ModelFiles, APipeIsNoModel) {
  try {
    const Model model(Env(), pipe());
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

// What is not a regular file is written to, never replaced by one.
TEST_F(ModelFiles, SavesIntoAPipe) {
  const std::string to = pipe();
  size_t bytes = 0;
  std::thread reader([&] {
    std::ifstream stream(to, std::ios::binary);
    bytes = std::string(std::istreambuf_iterator<char>(stream), {}).size();
  });
  Model(Env(), path_).Save(to);
  EXPECT_TRUE(std::filesystem::is_fifo(to));
  if (!std::filesystem::is_fifo(to)) reader.detach();  // it waits for ever
  if (reader.joinable()) reader.join();
  EXPECT_GT(bytes, 512u * 512 * 4);
}

}  // namespace plimsoll
