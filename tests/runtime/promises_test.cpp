// Told before, never crossed: what was found not to hold, one test each.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "plimsoll/session.h"
#include "runtime/session_support.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

SessionOptions one_thread(int64_t limit = 0) {
  SessionOptions options;
  return options.SetIntraOpNumThreads(1).SetMemoryLimit(limit);
}

class ModelFile {
 public:
  explicit ModelFile(const ModelBuilder& model) {
    std::string name = "/tmp/plimsoll-promises.XXXXXX";
    room_ = ::mkdtemp(name.data());
    std::ofstream(path(), std::ios::binary) << model.bytes();
  }
  ~ModelFile() { std::filesystem::remove_all(room_); }
  std::string path() const { return room_ / "model.onnx"; }

 private:
  std::filesystem::path room_;
};

Value floats(const std::vector<int64_t>& shape) {
  Value value = Value::CreateTensor(ElementType::kFloat, shape);
  std::iota(value.GetTensorMutableData<float>(),
            value.GetTensorMutableData<float>() + value.GetElementCount(), 1.0f);
  return value;
}

std::vector<Value> run(Session& session, const std::vector<int64_t>& shape) {
  std::vector<std::string> outputs;
  for (const ValueInfo& info : session.GetOutputs()) outputs.push_back(info.name);
  return session.Run({}, {"x"}, {floats(shape)}, outputs);
}

// x scaled by the iteration number, all of them stacked.
void scanning_loop(ModelBuilder& model, int64_t turns, const std::vector<std::string>& shape) {
  Edge* x = model.input("x", ElementType::kFloat, shape);
  Edge* count = model.constant<int64_t>("count", {}, {turns});
  Graph* body = model.new_body();
  Edge* i = model.body_input(*body, "i", ElementType::kInt64, {});
  model.body_input(*body, "go", ElementType::kBool, {});
  Edge* always = model.constant<bool>("always", {}, {true});
  body->outputs.push_back(model.node_in(*body, "Identity", {always})[0]);
  Edge* number = model.node_in(*body, "Cast", {i}, 1, {ModelBuilder::integer("to", 1)})[0];
  body->outputs.push_back(model.node_in(*body, "Mul", {x, number})[0]);
  Edge* scanned = model.node("Loop", {count, nullptr}, 1, {ModelBuilder::body("body", body)})[0];
  model.output(scanned);
}

}  // namespace

TEST(Promises, ScanOutputsOfKnownSizeArePlanned) {
  ModelBuilder model;
  scanning_loop(model, 64, {"1024"});
  const ModelFile file(model);
  const Plan plan = Model(Env(), file.path(), one_thread()).MakePlan();
  EXPECT_FALSE(plan.depends_on_data);
  Session session(Env(), file.path(), one_thread(plan.minimum_limit_bytes));
  const std::vector<Value> outputs = run(session, {1024});
  EXPECT_EQ(outputs[0].GetShape(), (std::vector<int64_t>{64, 1024}));
  EXPECT_EQ(outputs[0].GetTensorData<float>()[63 * 1024 + 2], 3 * 63);
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
  EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].peak_bytes, 0);
}

// Along inner axes and backwards: elements are copied to a place that is planned, results to theirs.
TEST(Promises, AScanOfKnownSizeIsPlanned) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"32", "64"});
  Edge* zero = model.constant<float>("zero", {32}, std::vector<float>(32, 0.0f));
  Graph* body = model.new_body();
  Edge* sum = model.body_input(*body, "sum", ElementType::kFloat, {"32"});
  Edge* element = model.body_input(*body, "element", ElementType::kFloat, {"32"});
  Edge* next = model.node_in(*body, "Add", {sum, element})[0];
  body->outputs.push_back(next);
  body->outputs.push_back(model.node_in(*body, "Neg", {next})[0]);
  const std::vector<int64_t> one = {1};
  const auto results = model.node(
      "Scan", {zero, x}, 2,
      {ModelBuilder::body("body", body), ModelBuilder::integer("num_scan_inputs", 1),
       ModelBuilder::integers("scan_input_axes", one), ModelBuilder::integers("scan_output_axes", one),
       ModelBuilder::integers("scan_input_directions", one)});
  for (Edge* edge : results) model.output(edge);
  const ModelFile file(model);
  const Plan plan = Model(Env(), file.path(), one_thread()).MakePlan();
  EXPECT_FALSE(plan.depends_on_data);
  Session session(Env(), file.path(), one_thread(plan.minimum_limit_bytes));
  const std::vector<Value> outputs = run(session, {32, 64});
  EXPECT_EQ(outputs[1].GetShape(), (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(outputs[1].GetTensorData<float>()[63], -outputs[0].GetTensorData<float>()[0]);
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
  EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].peak_bytes, 0);
}

TEST(Promises, ALoopOfNoTurnsKeepsTheShapeOfItsElements) {
  ModelBuilder model;
  scanning_loop(model, 0, {"n", "3"});
  const ModelFile file(model);
  Session session(Env(), file.path(), one_thread());
  EXPECT_EQ(run(session, {5, 3})[0].GetShape(), (std::vector<int64_t>{0, 5, 3}));
}

TEST(Promises, AFileThatIsReadIntoMemoryIsCharged) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"2", "512"});
  Edge* w = model.constant<float>("w", {512, 512}, std::vector<float>(512 * 512, 0.5f));
  model.output(model.node("MatMul", {x, w})[0]);
  const ModelFile file(model);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file.path()));
  SessionOptions options = one_thread();
  options.read_model_into_memory = true;
  Session session(Env(), file.path(), options);
  EXPECT_GE(session.GetMemoryReport()[Account::kWeights].now_bytes, size);
  const Plan plan = session.Prepare({});
  run(session, {2, 512});
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
  options.memory_limit_bytes = size / 2;
  EXPECT_THROW(Session(Env(), file.path(), options), Error);
}

// The step with the most scratch is not the one with the most values: their sum bounds nothing.
TEST(Promises, TheLowerBoundCountsScratchWhereItLives) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"256", "512"});
  Edge* wide = model.node("Concat", {x, x, x, x}, 1, {ModelBuilder::integer("axis", 0)})[0];
  Edge* sum =
      model.node("ReduceSum", {model.node("Exp", {wide})[0]}, 1, {ModelBuilder::integer("keepdims", 0)})[0];
  Edge* square = model.node("MatMul", {x, model.node("Transpose", {x}, 1, {})[0]})[0];
  model.output(model.node("Add", {square, sum})[0]);
  const ModelFile file(model);
  SessionOptions options = one_thread();
  options.optimization_level = GraphOptimizationLevel::kDisableAll;
  const Plan plan = Model(Env(), file.path(), options).MakePlan();
  int64_t most = 0, most_scratch = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    int64_t live = 0;
    for (const PlannedBuffer& buffer : plan.buffers) {
      const bool alive =
          buffer.first_step <= static_cast<int64_t>(s) && static_cast<int64_t>(s) < buffer.end_step;
      if (alive) live += buffer.size_bytes;
      if (alive && buffer.scratch) most_scratch = std::max(most_scratch, buffer.size_bytes);
    }
    most = std::max(most, live);
  }
  EXPECT_GT(most_scratch, 0);
  const int64_t planned = plan.accounts[static_cast<size_t>(Account::kPlanned)];
  EXPECT_EQ(plan.lower_bound_bytes, plan.peak_bytes - planned + most);
}

// Nothing is said to be enough where only the data knows; what the ledger shows afterwards adds up.
TEST(Promises, NoSmallestLimitWhereShapesDependOnData) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  model.output(model.node("NonZero", {model.node("Relu", {x})[0]})[0]);
  const ModelFile file(model);
  const Plan plan = Model(Env(), file.path(), one_thread()).MakePlan({{"x", {100'000}}});
  EXPECT_TRUE(plan.depends_on_data);
  EXPECT_EQ(plan.minimum_limit_bytes, 0);
  Session session(Env(), file.path(), one_thread());
  run(session, {100'000});
  const MemoryReport report = session.GetMemoryReport();
  int64_t sum = 0;
  for (const AccountReport& account : report.accounts) sum += account.at_peak_bytes;
  EXPECT_EQ(sum, report.peak_bytes);
  EXPECT_GT(report.peak_bytes, plan.peak_bytes);
}

TEST(Promises, PlanningIsInsideTheLine) {
  ModelBuilder model;
  Edge* value = model.input("x", ElementType::kFloat, {"16"});
  for (int i = 0; i < 3000; ++i) value = model.node(i % 2 == 0 ? "Tanh" : "Sigmoid", {value})[0];
  model.output(value);
  const ModelFile file(model);
  const Plan plan = Model(Env(), file.path(), one_thread()).MakePlan();
  const Env env;
  Session session(env, file.path(), one_thread(plan.minimum_limit_bytes));
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
  EXPECT_GT(session.GetMemoryReport().peak_bytes,
            session.GetMemoryReport().now_bytes);  // its tables are gone
  EXPECT_THROW(Session(env, file.path(), one_thread(plan.minimum_limit_bytes - 1)), Error);
}

// A huge page costs as much as a quarter of it in small ones: activations take their last one whole where
// that is little beside the weights, and never for more than a 64th of all.
TEST(Promises, ALastHugePageIsTakenWholeWhereThatIsLittle) {
  constexpr int64_t kHugePage = 2 << 20, kSize = 1024;
  ModelBuilder model;
  Edge* value = model.input("x", ElementType::kFloat, {"rows", std::to_string(kSize)});
  const std::vector<float> numbers(kSize * kSize, 0.25f);
  for (int i = 0; i < 8; ++i)
    value = model.node("MatMul",
                       {value, model.constant<float>(fmt::format("w{}", i), {kSize, kSize}, numbers)})[0];
  model.output(value);
  const ModelFile file(model);
  int whole = 0, others = 0;
  for (const int64_t rows : {40, 100, 140, 160, 180, 200, 220, 240, 260}) {
    Session session(Env(), file.path(), one_thread());
    run(session, {rows, kSize});
    const MemoryReport report = session.GetMemoryReport();
    EXPECT_EQ(report.peak_bytes, session.MakePlan({{"x", {rows, kSize}}}).peak_bytes) << rows;
    const int64_t planned = report[Account::kPlanned].peak_bytes;
    const int64_t weights = report[Account::kPacked].now_bytes + report[Account::kWeights].now_bytes;
    if (planned % kHugePage == 0) {
      ++whole;
      continue;
    }
    ++others;
    const int64_t more = kHugePage - planned % kHugePage;
    EXPECT_TRUE(more > kHugePage * 3 / 4 || more > (weights + planned) / 64) << rows << ": " << planned;
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(others, 0);
}

}  // namespace plimsoll
