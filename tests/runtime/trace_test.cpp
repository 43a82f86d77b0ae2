// The Chrome trace of a session: ONNX Runtime's fields, and the ledger at each node.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "session_support.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

class Profiling : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll.XXXXXX").string();
    room_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(room_); }
  std::string prefix() const { return room_ / "profile"; }
  std::filesystem::path room_;
};

}  // namespace

TEST_F(Profiling, WritesATraceWithBytesInUseAtEachNode) {
  const std::string bytes = product_model();
  Session session = open(bytes, SessionOptions().EnableProfiling(prefix()));
  EXPECT_GT(session.GetProfilingStartTimeNs(), 0u);
  const std::vector<Value> x = {floats({2, 64}, std::vector<float>(128, 0.1f))};
  for (int i = 0; i < 3; ++i)
    session.Run(RunOptions().SetRunTag("a \"tag\""), {"x"}, x, {session.GetOutputs()[0].name});
  const std::string path = session.EndProfiling();
  EXPECT_EQ(path.rfind(prefix() + "_", 0), 0u);
  EXPECT_EQ(session.EndProfiling(), "");
  std::ifstream file(path);
  const Json events = Json::parse(file);
  std::map<std::string, int> count;
  for (const Json& event : events) {
    ++count[event["name"]];
    for (const char* field : {"pid", "tid", "dur", "ts"})
      EXPECT_TRUE(event[field].is_number_integer()) << event;
    EXPECT_EQ(event["ph"], "X");
    if (event["name"] == "model_run") {
      EXPECT_EQ(event["args"]["run_tag"], "a \"tag\"");
    }
    if (event["cat"] != "Node") continue;
    const Json& args = event["args"];
    EXPECT_EQ(args["provider"], "CPUExecutionProvider");
    int64_t sum = 0;
    for (const auto& account : args["memory_bytes"]) sum += account.get<int64_t>();
    EXPECT_EQ(sum, args["memory_total_bytes"]);
    EXPECT_GT(args["memory_bytes"]["session"], 0);
    if (args["op_name"] != "MatMul") continue;
    EXPECT_EQ(args["input_type_shape"], Json::parse(R"([{"float":[2,64]},{"float":[64,64]}])"));
    EXPECT_EQ(args["output_type_shape"], Json::parse(R"([{"float":[2,64]}])"));
    EXPECT_EQ(args["output_size"], "512");
    EXPECT_EQ(args["activation_size"], "512");
  }
  EXPECT_EQ(count["model_loading_array"], 1);
  EXPECT_EQ(count["session_initialization"], 1);
  EXPECT_EQ(count["model_run"], 3);
  EXPECT_EQ(count["SequentialExecutor::Execute"], 3);
}

// However large the table is, only the rows that are picked are read.
TEST(SessionProfile, CountsTheBytesThatGatherReads) {
  ModelBuilder model;
  Edge* table = model.constant<float>("table", {1000, 8}, std::vector<float>(8000, 1.0f));
  Edge* rows = model.input("rows", ElementType::kInt64, {"3"});
  model.output(model.node("Gather", {table, rows})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  session.EnableProfiling(true);
  Value chosen = Value::CreateTensor(ElementType::kInt64, {3});
  std::fill_n(chosen.GetTensorMutableData<int64_t>(), 3, 5);
  std::vector<Value> inputs;
  inputs.push_back(std::move(chosen));
  session.Run({}, {"rows"}, inputs, {session.GetOutputs()[0].name});
  const std::vector<Session::ProfileEntry> profile = session.GetProfile();
  ASSERT_EQ(profile.size(), 1u);
  EXPECT_EQ(profile[0].bytes, 3 * 8 + 2 * 3 * 8 * 4);
}

TEST_F(Profiling, TwoSessionsHaveTwoFilesAndWhoeverForgetsTheEndHasItToo) {
  const std::string bytes = product_model();
  {
    Session first = open(bytes, SessionOptions().EnableProfiling(prefix()));
    Session second = open(bytes, SessionOptions().EnableProfiling(prefix()));
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(room_)) {
    std::ifstream file(entry.path());
    EXPECT_EQ(Json::parse(file).size(), 2u);
    ++files;
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(Profiling, AFileThatCannotBeOpenedIsAnErrorAtOnce) {
  const std::string bytes = product_model();
  EXPECT_EQ(code_of([&] { open(bytes, SessionOptions().EnableProfiling(room_ / "none" / "profile")); }),
            ErrorCode::kIo);
  Session session = open(bytes);
  EXPECT_EQ(session.EndProfiling(), "");
  EXPECT_EQ(session.GetProfilingStartTimeNs(), 0u);
}

}  // namespace plimsoll
