#include "plimsoll/quantize.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "plimsoll/session.h"
#include "quantize/fixtures.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

// relu(x W1) W2, as MatMul and as Gemm with a bias.
std::string two_layers(const std::vector<float>& first, int opset = 17) {
  ModelBuilder model(opset);
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "64"});
  Edge* h = model.node("MatMul", {x, model.constant("W1", {64, 96}, first)})[0];
  Edge* r = model.node("Relu", {h})[0];
  Edge* y = model.node(
      "Gemm",
      {r, model.constant("W2", {32, 96}, normal(32 * 96, 2)), model.constant("b", {32}, normal(32, 3))}, 1,
      {ModelBuilder::integer("transB", 1)})[0];
  model.output(y);
  return model.bytes();
}

std::vector<float> run(const std::string& path) {
  const Env env;
  Session session(env, path);
  Value x = Value::CreateTensor(ElementType::kFloat, {5, 64});
  const std::vector<float> values = normal(5 * 64, 9);
  std::copy(values.begin(), values.end(), x.GetTensorMutableData<float>());
  const Value y = session.Run({}, {"x"}, {x}, {session.GetOutputNames()[0]})[0];
  const auto* data = y.GetTensorData<float>();
  return {data, data + y.GetElementCount()};
}

double signal_to_noise(const std::vector<float>& expected, const std::vector<float>& found) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    signal += double{expected[i]} * expected[i];
    noise += std::pow(double{expected[i]} - found[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

ErrorCode code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

struct Case {
  const char* name;
  QuantizeOptions options;
  double least_decibels;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const char* name, double decibels, const std::function<void(QuantizeOptions&)>& set) {
    QuantizeOptions options;
    set(options);
    list.push_back({name, options, decibels});
  };
  add("dynamic", 30, [](QuantizeOptions&) {});
  add("per channel", 32, [](QuantizeOptions& o) { o.per_channel = true; });
  add("reduced", 26, [](QuantizeOptions& o) { o.reduce_range = true; });
  add("unsigned", 30, [](QuantizeOptions& o) { o.weight_type = ElementType::kUint8; });
  for (const auto& [bits, decibels] : {std::pair(8, 40.0), std::pair(4, 17.0), std::pair(2, 3.0)}) {
    add("blocks", decibels, [&, b = bits](QuantizeOptions& o) {
      o.mode = QuantizeMode::kNBits, o.format = QuantizeFormat::kQOperator, o.bits = b, o.block_size = 16;
    });
    add("symmetric blocks", decibels - 2, [&, b = bits](QuantizeOptions& o) {
      o.mode = QuantizeMode::kNBits, o.format = QuantizeFormat::kQOperator, o.bits = b, o.block_size = 32;
      o.symmetric = true;
    });
  }
  add("hqq", 17, [](QuantizeOptions& o) {
    o.mode = QuantizeMode::kNBits, o.format = QuantizeFormat::kQOperator, o.block_size = 16, o.hqq = true;
  });
  add("fp16", 60, [](QuantizeOptions& o) { o.mode = QuantizeMode::kFloat16, o.keep_io_types = true; });
  add("bf16", 40, [](QuantizeOptions& o) { o.mode = QuantizeMode::kBFloat16, o.keep_io_types = true; });
  return list;
}

TEST(Quantize, EveryModeStaysNear) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  const std::vector<float> expected = run(path);
  for (const Case& c : cases()) {
    const std::string out = folder / "small.onnx";
    const QuantizeReport report = Quantize(Env(), path, out, c.options);
    EXPECT_GE(report.quantized.size(), 2u) << c.name;
    EXPECT_GT(signal_to_noise(expected, run(out)), c.least_decibels) << c.name;
    EXPECT_EQ(report.output_bytes, static_cast<int64_t>(fs::file_size(out)));
    EXPECT_EQ(folder.files(), 2u);
  }
}

TEST(Quantize, ExcludedNodesStay) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  QuantizeOptions options;
  options.excluded_nodes = {"MatMul1"};
  EXPECT_EQ(Quantize(Env(), path, folder / "a.onnx", options).quantized.size(), 1u);
  options.excluded_nodes = {"nobody"};
  EXPECT_EQ(code_of([&] { Quantize(Env(), path, folder / "b.onnx", options); }), ErrorCode::kInvalidArgument);
  options = {};
  options.nodes = {"Gemm5"};
  const QuantizeReport report = Quantize(Env(), path, folder / "c.onnx", options);
  ASSERT_EQ(report.quantized.size(), 1u);
  EXPECT_EQ(report.quantized[0].node, "Gemm5_MatMul");
}

// if sum(x) > 0 then x W1 W2 else x W1 V, with a weight from outside that both branches share, weights of
// their own, and behind it x W1 again.
std::string branches() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"5", "64"});
  Edge* shared = model.constant("W1", {64, 96}, normal(64 * 96, 1));
  Attribute flat = ModelBuilder::integer("keepdims", 0);
  Edge* sum = model.node("ReduceSum", {x}, 1, {flat})[0];
  Edge* is_positive = model.node("Greater", {sum, model.constant<float>("zero", {}, {0.0f})})[0];
  std::vector<Graph*> bodies;
  for (unsigned i : {2u, 3u}) {
    Graph* body = bodies.emplace_back(model.new_body());
    Edge* h = model.node_in(*body, "MatMul", {x, shared})[0];
    Edge* own = model.constant_in(*body, "V" + std::to_string(i), {96, 32}, normal(96 * 32, i));
    Edge* y = model.node_in(*body, "MatMul", {h, own})[0];
    y->facts.type.type = ElementType::kFloat;
    body->outputs.push_back(y);
  }
  Edge* chosen = model.node(
      "If", {is_positive}, 1,
      {ModelBuilder::body("then_branch", bodies[0]), ModelBuilder::body("else_branch", bodies[1])})[0];
  Edge* behind = model.node("MatMul", {x, shared})[0];
  model.output(model.node("Concat", {chosen, behind}, 1, {ModelBuilder::integer("axis", 1)})[0]);
  return model.bytes();
}

TEST(Quantize, BodiesAreQuantizedWhereAsked) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", branches());
  const std::vector<float> expected = run(path);
  QuantizeOptions options;
  EXPECT_EQ(Quantize(Env(), path, folder / "outside.onnx", options).quantized.size(), 1u);
  options.bodies = true;
  EXPECT_EQ(Quantize(Env(), path, folder / "all.onnx", options).quantized.size(), 5u);
  EXPECT_GT(signal_to_noise(expected, run(folder / "all.onnx")), 30);
  // No weight is left in floats, and the shared one is there once: three of 8 bits.
  EXPECT_LT(fs::file_size(folder / "all.onnx"), size_t{64 * 96 + 2 * 96 * 32} + 6000);
  options.excluded_nodes = {"nobody"};
  EXPECT_EQ(code_of([&] { Quantize(Env(), path, folder / "b.onnx", options); }), ErrorCode::kInvalidArgument);
}

TEST(Quantize, ZerosQuantizeToZeros) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(std::vector<float>(64 * 96, 0.0f)));
  const std::vector<float> expected = run(path);
  for (const Case& c : cases()) {
    Quantize(Env(), path, folder / "a.onnx", c.options);
    const std::vector<float> found = run(folder / "a.onnx");
    const bool is_half =
        c.options.mode == QuantizeMode::kFloat16 || c.options.mode == QuantizeMode::kBFloat16;
    for (size_t i = 0; i < expected.size(); ++i) {
      // The bias is all there is: halves round it. Zero points that are floats are taken from sums of floats.
      const double most = is_half ? std::abs(expected[i]) / 128 : c.options.hqq ? 1e-3 : 1e-6;
      EXPECT_NEAR(found[i], expected[i], most) << c.name;
    }
  }
}

TEST(Quantize, WhatIsNotFiniteIsRefused) {
  for (const Case& c : cases()) {
    // Halves have infinities and NaN of their own.
    if (c.options.mode == QuantizeMode::kFloat16 || c.options.mode == QuantizeMode::kBFloat16) continue;
    for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE(testing::Message() << c.name << ", " << bad);
      const Folder folder;
      std::vector<float> weights = normal(64 * 96, 1);
      weights[77] = bad;
      const std::string path = folder.write("model.onnx", two_layers(weights));
      try {
        Quantize(Env(), path, folder / "a.onnx", c.options);
        ADD_FAILURE() << "it was taken";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("'W1'"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("77"), std::string::npos) << error.what();
      }
      EXPECT_EQ(folder.files(), 1u);
    }
  }
}

TEST(Quantize, WhatIsQuantizedIsRefused) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  Quantize(Env(), path, folder / "a.onnx", {});
  EXPECT_EQ(code_of([&] { Quantize(Env(), folder / "a.onnx", folder / "b.onnx", {}); }),
            ErrorCode::kInvalidArgument);
}

class OneSample : public CalibrationReader {
 public:
  bool Next(std::map<std::string, Value>& inputs) override {
    if (done_) return false;
    Value x = Value::CreateTensor(ElementType::kFloat, {5, 64});
    const std::vector<float> values = normal(5 * 64, 9);
    std::copy(values.begin(), values.end(), x.GetTensorMutableData<float>());
    inputs.insert_or_assign("x", std::move(x));
    return done_ = true;
  }
  bool Rewind() override {
    done_ = false;
    return true;
  }

 private:
  bool done_ = false;
};

TEST(Quantize, OldOpsetsAreRefused) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1), 10));
  EXPECT_EQ(code_of([&] { Quantize(Env(), path, folder / "a.onnx", {}); }), ErrorCode::kInvalidArgument);
  const std::string older = folder.write("older.onnx", two_layers(normal(64 * 96, 1), 9)),
                    newer = folder.write("newer.onnx", two_layers(normal(64 * 96, 1), 10));
  QuantizeOptions options;
  options.mode = QuantizeMode::kStatic;
  for (const QuantizeFormat format : {QuantizeFormat::kQDQ, QuantizeFormat::kQOperator}) {
    options.format = format;
    OneSample reader;
    options.calibration = &reader;
    EXPECT_EQ(code_of([&] { Quantize(Env(), older, folder / "b.onnx", options); }),
              ErrorCode::kInvalidArgument);
    EXPECT_NO_THROW(Quantize(Env(), newer, folder / "c.onnx", options));
  }
}

// The limit that the Error names is enough, and one byte less is not.
TEST(Quantize, TooSmallALimitNamesTheSmallest) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  QuantizeOptions options;
  options.memory_limit_bytes = 4096;
  std::string message;
  try {
    Quantize(Env(), path, folder / "a.onnx", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
    message = error.what();
  }
  ASSERT_NE(message.rfind(' '), std::string::npos);
  EXPECT_EQ(folder.files(), 1u);
  options.memory_limit_bytes = std::stoll(message.substr(message.rfind(' ')));
  EXPECT_LE(Quantize(Env(), path, folder / "a.onnx", options).peak_bytes, options.memory_limit_bytes);
  --options.memory_limit_bytes;
  EXPECT_EQ(code_of([&] { Quantize(Env(), path, folder / "a.onnx", options); }), ErrorCode::kBudgetExceeded);
}

// In every mode a plan tells what the work takes, and no less.
TEST(Quantize, WhatIsToldIsTaken) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  for (const Case& c : cases()) {
    const QuantizeReport report = Quantize(Env(), path, folder / "a.onnx", c.options);
    EXPECT_GT(report.told_bytes, 0) << c.name;
    EXPECT_EQ(report.told_bytes, report.peak_bytes) << c.name;
  }
}

// A file that may not grow is what a full disk looks like.
TEST(Quantize, AFullDiskLeavesNothing) {
  const Folder folder;
  const std::string path = folder.write("model.onnx", two_layers(normal(64 * 96, 1)));
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most : {rlim_t{100}, rlim_t{8192}}) {
    const rlimit small = {most, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const ErrorCode code = code_of([&] { Quantize(Env(), path, folder / "a.onnx", {}); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(code, ErrorCode::kIo);
    EXPECT_EQ(folder.files(), 1u);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code_of([&] { Quantize(Env(), path, folder / "none/a.onnx", {}); }), ErrorCode::kIo);
}

// Weights pass through a file: of a model of many weights hardly more is held than of one of few.
TEST(Quantize, MemoryDoesNotGrowWithTheWeights) {
  const Folder folder;
  const auto peak = [&](int64_t width) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"1", std::to_string(width)});
    model.output(model.node(
        "MatMul", {x, model.constant("W", {width, width},
                                     std::vector<float>(static_cast<size_t>(width * width), 0.5f))})[0]);
    const std::string path = folder.write("model.onnx", model.bytes());
    return Quantize(Env(), path, folder / "a.onnx", {}).peak_bytes;
  };
  EXPECT_LT(peak(1500), peak(64) + (1 << 20));
}

}  // namespace
}  // namespace plimsoll
