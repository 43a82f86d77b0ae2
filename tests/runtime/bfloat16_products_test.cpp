// SessionOptions::bfloat16_products: off unless it is asked for, half the packed bytes, told before.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "plimsoll/model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

constexpr int64_t kProductDepth = 256, kProductColumns = 512, kProductRows = 8;

std::vector<float> matrix() {
  std::vector<float> weights(kProductDepth * kProductColumns);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i)) / 16;
  return weights;
}

std::vector<float> rows_of_x(int64_t rows) {
  std::vector<float> x(static_cast<size_t>(rows * kProductDepth));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i) * 0.7f);
  return x;
}

class ModelFile {
 public:
  ModelFile()
      : path_((std::filesystem::temp_directory_path() /
               ("plimsoll_bfloat16_" + std::to_string(::getpid()) + ".onnx"))
                  .string()) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"rows", std::to_string(kProductDepth)});
    Edge* w = model.constant<float>("w", {kProductDepth, kProductColumns}, matrix());
    model.output(model.node("MatMul", {x, w})[0]);
    std::ofstream(path_, std::ios::binary) << model.bytes();
  }
  ~ModelFile() { std::filesystem::remove(path_); }
  ModelFile(const ModelFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SessionOptions options(bool rounded) {
  SessionOptions result;
  result.SetIntraOpNumThreads(1);
  result.bfloat16_products = rounded;
  return result;
}

std::vector<float> answer(Session& session, int64_t rows = kProductRows) {
  std::vector<Value> inputs;
  inputs.push_back(floats({rows, kProductDepth}, rows_of_x(rows)));
  return to_floats(session.Run({}, {"x"}, inputs, {session.GetOutputs()[0].name})[0]);
}

int64_t packed(Session& session) {
  return session.GetMemoryReport()[Account::kPacked].now_bytes;
}

TEST(Bfloat16Products, AreNearAndTakeHalfTheBytes) {
  const ModelFile file;
  Session plain(Env(), file.path(), options(false)), rounded(Env(), file.path(), options(true));
  EXPECT_EQ(packed(plain), kProductDepth * kProductColumns * 4);
  EXPECT_EQ(packed(rounded), kProductDepth * kProductColumns * 2);
  const std::vector<float> found = answer(rounded), expected = answer(plain);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_NE(found, expected);  // it does round
  const std::vector<float> x = rows_of_x(kProductRows), w = matrix();
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t row = i / kProductColumns, column = i % kProductColumns;
    double terms = 0;
    for (size_t k = 0; k < kProductDepth; ++k)
      terms += std::abs(double{x[row * kProductDepth + k]} * double{w[k * kProductColumns + column]});
    // Both factors are off by at most 2^-9 of themselves; sums of 256 floats, in two orders, by less than the
    // rest.
    ASSERT_NEAR(found[i], expected[i], terms * (0x1p-8 + 0x1p-14)) << i;
  }
}

// What an element is does not depend on what else is computed with it.
TEST(Bfloat16Products, DoNotDependOnTheBatch) {
  const ModelFile file;
  Session session(Env(), file.path(), options(true));
  const std::vector<float> few = answer(session, 1), many = answer(session, 40);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Bfloat16Products, AreToldBefore) {
  const ModelFile file;
  Model model(Env(), file.path(), options(true));
  const int64_t told = model.MakePlan({{"x", {kProductRows, kProductDepth}}}).peak_bytes;
  Session session(Env(), file.path(), options(true).SetMemoryLimit(told));
  answer(session);
  EXPECT_LE(session.GetMemoryReport().peak_bytes, told);
  EXPECT_LT(
      told,
      Model(Env(), file.path(), options(false)).MakePlan({{"x", {kProductRows, kProductDepth}}}).peak_bytes);
}

TEST(Bfloat16Products, ByConfigKeys) {
  const ModelFile file;
  for (const char* key : {"plimsoll.bfloat16_products", "mlas.enable_gemm_fastmath_arm64_bfloat16"}) {
    SessionOptions asked = options(false);
    asked.AddConfigEntry(key, "1");
    EXPECT_TRUE(asked.bfloat16_products) << key;
    asked.AddConfigEntry(key, "0");
    EXPECT_FALSE(asked.bfloat16_products) << key;
  }
}

// Without packing the matrix is rounded in every run, to the same bits.
TEST(Bfloat16Products, WithoutPacking) {
  const ModelFile file;
  SessionOptions raw = options(true);
  raw.prepack = false;
  Session unpacked(Env(), file.path(), raw), rounded(Env(), file.path(), options(true));
  EXPECT_EQ(packed(unpacked), 0);
  EXPECT_EQ(answer(unpacked), answer(rounded));
}

}  // namespace
}  // namespace plimsoll
