// What SessionOptions and RunOptions ask for beyond memory: each by what it changes.
#include "plimsoll/session_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "plimsoll/config_keys.h"
#include "session_support.h"
#include "support/places.h"

namespace plimsoll {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Room : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll.XXXXXX").string();
    room_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(room_); }
  std::filesystem::path room_;
};
using SessionSettings = Room;

// a = x * w, b = exp(a), c = relu(x)
std::string three_outputs() {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "4"});
  Edge* w = model.constant<float>("w", {4, 4}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2});
  Edge* a = model.node("MatMul", {x, w})[0];
  Edge* b = model.node("Exp", {a})[0];
  Edge* c = model.node("Relu", {x})[0];
  for (Edge* edge : {a, b, c}) model.output(edge);
  return model.bytes();
}

std::string what_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST(ConfigKeys, RefusedOnesAreNamedAndTheirDefaultsPass) {
  for (const ConfigKey& key : GetConfigKeys()) {
    const auto add = [&](const std::string& value) {
      if (key.of_run) {
        RunOptions().AddConfigEntry(key.key, value);
      } else {
        SessionOptions().AddConfigEntry(key.key, value);
      }
    };
    if (key.state == ConfigKeyState::kRefused) {
      EXPECT_EQ(code_of([&] { add("something else"); }), ErrorCode::kNotImplemented) << key.key;
      EXPECT_THAT(what_of([&] { add("something else"); }), HasSubstr(key.key));
      add(key.same);
    } else if (key.state == ConfigKeyState::kNoMeaning) {
      add("1");
    }
  }
}

// The page is the table, row by row.
TEST(ConfigKeys, ThePageTellsWhatTheCodeDoes) {
  std::ifstream file(source_dir() + "/docs/config-keys.md");
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) == 0) rows.insert(line);
  }
  EXPECT_EQ(rows.size(), GetConfigKeys().size());
  for (const ConfigKey& key : GetConfigKeys()) {
    std::ostringstream row;
    row << "| `" << key.key << "` | " << (key.of_run ? "run" : "session") << " | "
        << config_key_state_name(key.state)
        << (*key.same != '\0' ? std::string(", `") + key.same + "` passes" : "") << " | " << key.note << " |";
    EXPECT_THAT(rows, Contains(row.str()));
  }
}

TEST(ConfigKeys, WhatTheySet) {
  SessionOptions options;
  options.AddConfigEntry("session.disable_prepacking", "1")
      .AddConfigEntry("session.use_env_allocators", "1")
      .AddConfigEntry("session.set_denormal_as_zero", "1")
      .AddConfigEntry("session.strict_shape_type_inference", "1");
  EXPECT_TRUE(!options.prepack && options.use_env_allocators && options.denormal_as_zero && options.strict);
  EXPECT_EQ(options.GetConfigEntry("session.disable_prepacking"), "1");
  EXPECT_EQ(options.GetConfigEntryOrDefault("session.dynamic_block_base", "4"), "4");
  EXPECT_EQ(code_of([&] { options.GetConfigEntry("session.dynamic_block_base"); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { options.AddConfigEntry("session.disable_prepacking", "yes"); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { options.AddConfigEntry("session.load_model_format", "ORT"); }),
            ErrorCode::kNotImplemented);
  EXPECT_EQ(code_of([&] { options.AddConfigEntry("", "1"); }), ErrorCode::kInvalidArgument);
  RunOptions run;
  run.AddConfigEntry("memory.enable_memory_arena_shrinkage", "cpu:0");
  EXPECT_TRUE(run.shrink_arena());
  EXPECT_EQ(code_of([&] { run.AddConfigEntry("memory.enable_memory_arena_shrinkage", "gpu:0"); }),
            ErrorCode::kInvalidArgument);
}

TEST(ConfigKeys, OptionsHaveKeysToo) {
  SessionOptions options;
  options.AddConfigEntry("session.enable_cpu_mem_arena", "0")
      .AddConfigEntry("session.enable_mem_pattern", "0")
      .AddConfigEntry("session.enable_profiling", "trace_")
      .AddConfigEntry("session.execution_mode", "ort_parallel")
      .AddConfigEntry("session.graph_optimization_level", "enable_basic")
      .AddConfigEntry("session.intra_op_num_threads", "3")
      .AddConfigEntry("session.log_severity_level", "2")
      .AddConfigEntry("session.optimized_model_filepath", "optimized.onnx");
  EXPECT_FALSE(options.keep_arena);
  EXPECT_EQ(options.placer, Placer::kNaive);
  EXPECT_TRUE(options.enable_profiling);
  EXPECT_EQ(options.profile_file_prefix, "trace_");
  EXPECT_EQ(options.execution_mode, ExecutionMode::kParallel);
  EXPECT_EQ(options.optimization_level, GraphOptimizationLevel::kBasic);
  EXPECT_EQ(options.intra_op_threads, 3);
  EXPECT_EQ(options.log_severity_level, 2);
  EXPECT_EQ(options.optimized_model_path, "optimized.onnx");
  EXPECT_FALSE(options.AddConfigEntry("session.enable_profiling", "").enable_profiling);
  for (const char* key : {"session.intra_op_num_threads", "session.graph_optimization_level",
                          "session.execution_mode", "session.enable_mem_pattern"}) {
    EXPECT_EQ(code_of([&] { options.AddConfigEntry(key, "3x"); }), ErrorCode::kInvalidArgument) << key;
  }
}

TEST(ConfigKeys, UnknownOnesAreTold) {
  SessionOptions options;
  options.AddConfigEntry("session.no_such_thing", "1").AddConfigEntry("session.dynamic_block_base", "4");
  EXPECT_THAT(open(chain_model(1), options).GetWarnings(), ElementsAre(HasSubstr("session.no_such_thing")));
}

TEST(SessionSettingsOf, PrepackingCanBeTurnedOff) {
  const std::string bytes = product_model();
  Session packed = open(bytes),
          plain = open(bytes, SessionOptions().AddConfigEntry("session.disable_prepacking", "1"));
  EXPECT_GT(packed.GetMemoryReport()[Account::kPacked].now_bytes, 0);
  EXPECT_EQ(plain.GetMemoryReport()[Account::kPacked].now_bytes, 0);
  const std::vector<Value> x = {floats({2, 64}, std::vector<float>(128, 0.1f))};
  const std::string out = packed.GetOutputs()[0].name;
  const auto expected = to_floats(packed.Run({}, {"x"}, x, {out})[0]);
  const auto found = to_floats(plain.Run({}, {"x"}, x, {out})[0]);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4f * expected[i]);
}

TEST(SessionSettingsOf, DenormalsBecomeZerosOnlyWhereAsked) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"4"});
  Edge* half = model.constant<float>("half", {1}, {0.5f});
  model.output(model.node("Mul", {x, half})[0]);
  const std::string bytes = model.bytes();
  Session as_is = open(bytes),
          flushed = open(bytes, SessionOptions().AddConfigEntry("session.set_denormal_as_zero", "1"));
  const std::vector<Value> tiny = {floats({4}, {2e-38f, 2e-38f, 1e-39f, 1})};
  const std::string out = as_is.GetOutputs()[0].name;
  EXPECT_GT(to_floats(as_is.Run({}, {"x"}, tiny, {out})[0])[0], 0);
  EXPECT_THAT(to_floats(flushed.Run({}, {"x"}, tiny, {out})[0]), ElementsAre(0, 0, 0, 0.5f));
  volatile float after = 2e-38f;
  EXPECT_GT(after * 0.5f, 0);  // the thread is as it was
}

TEST(SessionSettingsOf, FreeDimensionsGetASize) {
  const std::string bytes = chain_model(2);
  Session session = open(bytes, SessionOptions()
                                    .AddFreeDimensionOverrideByName("batch", 3)
                                    .AddFreeDimensionOverrideByName("nobody", 9));
  EXPECT_THAT(session.GetInputs()[0].dims, ElementsAre(3, 64));
  EXPECT_EQ(
      code_of([&] {
        session.Run({}, {"x"}, {floats({2, 64}, std::vector<float>(128))}, {session.GetOutputs()[0].name});
      }),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { SessionOptions().AddFreeDimensionOverrideByName("batch", -1); }),
            ErrorCode::kInvalidArgument);
}

// The name of the dimension becomes its denotation, byte for byte.
TEST(SessionSettingsOf, FreeDimensionsGetASizeByDenotation) {
  std::string bytes = chain_model(2);
  const std::string name =
                        "\x12\x05"
                        "batch",
                    denotation =
                        "\x1a\x05"
                        "BATCH";
  for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name))
    bytes.replace(at, 7, denotation);
  EXPECT_THAT(open(bytes).GetInputs()[0].dims, ElementsAre(-1, 64));
  EXPECT_THAT(open(bytes, SessionOptions().AddFreeDimensionOverride("BATCH", 5)).GetInputs()[0].dims,
              ElementsAre(5, 64));
}

// The weight of product_model() in a file of its own, which is then gone.
TEST_F(SessionSettings, ExternalInitializersNeedNoFile) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"1", "64"});
  Edge* w = model.constant<float>("w", {64, 64}, std::vector<float>(64 * 64, 0.5f));
  model.output(model.node("MatMul", {x, w})[0]);
  const std::string path = room_ / "model.onnx";
  write_model(model.graph(), path, {.max_file_bytes = 1000});
  std::filesystem::path data_file;
  for (const auto& entry : std::filesystem::directory_iterator(room_)) {
    if (entry.path().filename() != "model.onnx") data_file = entry.path();
  }
  ASSERT_FALSE(data_file.empty());
  std::ifstream stream(data_file, std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(stream)), {});
  std::filesystem::create_directory(room_ / "elsewhere");
  std::filesystem::rename(data_file, room_ / "elsewhere" / data_file.filename());

  const auto first = [&](const SessionOptions& options) {
    Session session(Env(), path, SessionOptions(options).SetIntraOpNumThreads(1));
    return to_floats(
        session.Run({}, {"x"}, {floats({1, 64}, std::vector<float>(64, 1))}, session.GetOutputNames())[0])[0];
  };
  EXPECT_EQ(code_of([&] { first({}); }), ErrorCode::kIo);
  std::vector<float> twos(64 * 64, 2);
  EXPECT_FLOAT_EQ(first(SessionOptions().AddExternalInitializers(
                      {"w"}, {Value::CreateTensor(twos.data(), twos.size(), {64, 64})})),
                  128);
  EXPECT_FLOAT_EQ(first(SessionOptions().AddExternalInitializersFromFilesInMemory(
                      {data_file.filename()}, {data.data()}, {data.size()})),
                  32);
  EXPECT_FLOAT_EQ(first(SessionOptions().AddConfigEntry(
                      "session.model_external_initializers_file_folder_path", room_ / "elsewhere")),
                  32);
  EXPECT_EQ(code_of([&] {
              first(SessionOptions().AddExternalInitializersFromFilesInMemory({data_file.filename()},
                                                                              {data.data()}, {100}));
            }),
            ErrorCode::kInvalidModel);
}

TEST(SessionSettingsOf, InitializersAreReplacedWhereTheyAre) {
  std::vector<float> other(64 * 64, 1.0f);
  const Value mine = Value::CreateTensor(other.data(), other.size(), {64, 64});
  const std::string bytes = product_model();
  Session session = open(bytes, SessionOptions().AddInitializer("w", mine).AddInitializer("not there", mine));
  Session before = open(bytes);
  const std::vector<Value> x = {floats({1, 64}, std::vector<float>(64, 0.f))};
  const std::string out = session.GetOutputs()[0].name;
  EXPECT_FLOAT_EQ(to_floats(before.Run({}, {"x"}, x, {out})[0])[0], 32);
  EXPECT_FLOAT_EQ(to_floats(session.Run({}, {"x"}, x, {out})[0])[0], 64);
  const Value wrong = Value::CreateTensor(other.data(), other.size(), {64 * 64});
  EXPECT_THAT(what_of([&] { open(bytes, SessionOptions().AddInitializer("w", wrong)); }), HasSubstr("'w'"));
  EXPECT_EQ(code_of([&] { SessionOptions().AddInitializer("w", mine).AddInitializer("w", mine); }),
            ErrorCode::kInvalidArgument);
  // One that the model has inside is no external one.
  EXPECT_EQ(code_of([&] { open(bytes, SessionOptions().AddExternalInitializers({"w"}, {mine})); }),
            ErrorCode::kInvalidArgument);
}

TEST_F(SessionSettings, OptimizedModelIsWrittenAndGivesTheSame) {
  const std::string bytes = chain_model(3), path = room_ / "optimized.onnx";
  Session first = open(bytes, SessionOptions().SetOptimizedModelFilePath(path));
  Session second(Env(), path, SessionOptions().SetIntraOpNumThreads(1));
  const std::vector<Value> x = {floats({1, 64}, std::vector<float>(64, 0.25f))};
  const std::string out = first.GetOutputs()[0].name;
  EXPECT_EQ(to_floats(first.Run({}, {"x"}, x, {out})[0]), to_floats(second.Run({}, {"x"}, x, {out})[0]));
  EXPECT_EQ(
      code_of([&] { open(bytes, SessionOptions().SetOptimizedModelFilePath(room_ / "no" / "dir.onnx")); }),
      ErrorCode::kIo);
}

TEST(SessionSettingsOf, ReuseCanBeTurnedOff) {
  const std::string bytes = chain_model(12);
  const auto planned = [&](const SessionOptions& options) {
    return open(bytes, options).Prepare({{"x", {4096, 64}}}).accounts[static_cast<size_t>(Account::kPlanned)];
  };
  EXPECT_GT(planned(SessionOptions().DisableMemReuse()), 3 * planned({}));
  EXPECT_LE(planned(SessionOptions().SetExecutionOrder(ExecutionOrder::kMemoryEfficient)), planned({}));
}

TEST(SessionSettingsOf, ProvidersAreKnownNotBuiltOrUnknown) {
  SessionOptions options;
  EXPECT_FALSE(options.HasProviders());
  options.AppendExecutionProvider("CPU",
                                  {{"arena_extend_strategy", "kSameAsRequested"}, {"max_mem", "4MiB"}});
  EXPECT_TRUE(options.HasProviders());
  EXPECT_EQ(options.providers[0].name, "CPUExecutionProvider");
  EXPECT_EQ(options.arena->arena_extend_strategy, 1);
  EXPECT_EQ(options.arena->max_mem, 4 << 20);
  EXPECT_EQ(code_of([&] { options.AppendExecutionProvider("CUDA"); }), ErrorCode::kNotImplemented);
  EXPECT_EQ(code_of([&] { options.AppendExecutionProvider("NoSuchThing"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              options.AppendExecutionProvider("CPU", {{"max_men", "1"}});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(GetAllProviders(), Contains("CUDAExecutionProvider"));
}

TEST(RunOutputs, AnySubsetInAnyOrderAndTwice) {
  const std::string bytes = three_outputs();
  Session session = open(bytes);
  const std::vector<std::string> names = session.GetOutputNames();
  const std::vector<Value> x = {floats({1, 4}, {-1, 0, 1, 2})};
  for (const bool only : {false, true}) {
    const RunOptions options = RunOptions().SetOnlyExecutePathToFetches(only);
    const auto some = session.Run(options, {"x"}, x, {names[2], names[0], names[2]});
    ASSERT_EQ(some.size(), 3u);
    EXPECT_THAT(to_floats(some[0]), ElementsAre(0, 0, 1, 2));
    EXPECT_THAT(to_floats(some[1]), ElementsAre(-2, 0, 2, 4));
    EXPECT_EQ(some[0].GetData(), some[2].GetData());
    EXPECT_TRUE(session.Run(options, {"x"}, x, {}).empty());
  }
}

TEST(RunOutputs, OnlyThePathToThemRunsAndIsPlanned) {
  const std::string bytes = three_outputs();
  Session session = open(bytes);
  const std::vector<std::string> names = session.GetOutputNames();
  const Plan all = session.Prepare({{"x", {8, 4}}}), one = session.Prepare({{"x", {8, 4}}}, {names[2]});
  EXPECT_EQ(all.steps.size(), 3u);
  EXPECT_EQ(one.steps.size(), 1u);
  session.EnableProfiling(true);
  const std::vector<Value> x = {floats({8, 4}, std::vector<float>(32, 1))};
  session.Run(RunOptions().SetOnlyExecutePathToFetches(true), {"x"}, x, {names[2]});
  EXPECT_EQ(session.GetProfile().size(), 1u);
  session.Run({}, {"x"}, x, {names[2]});
  EXPECT_EQ(session.GetProfile().size(), 3u);
}

TEST(RunOutputs, PreallocatedOnesAreWrittenInPlace) {
  const std::string bytes = three_outputs();
  Session session = open(bytes);
  const std::vector<std::string> names = session.GetOutputNames();
  Value place = floats({1, 4}, {9, 9, 9, 9});
  Value outputs[2] = {place, Value()};
  const Value x = floats({1, 4}, {1, 2, 3, 4});
  const char* in[] = {"x"};
  const char* out[] = {names[0].c_str(), names[2].c_str()};
  session.Run(RunOptions(nullptr), in, &x, 1, out, outputs, 2);
  EXPECT_THAT(to_floats(place), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(to_floats(outputs[1]), ElementsAre(1, 2, 3, 4));
}

TEST(RunOutputs, BindingsOfAnotherSessionAreRefused) {
  const std::string bytes = three_outputs();
  Session mine = open(bytes), other = open(bytes);
  IoBinding binding(mine);
  EXPECT_EQ(code_of([&] { other.Run({}, binding); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              binding.BindOutput(mine.GetOutputNames()[0], MemoryInfo("Cuda", AllocatorType::kDevice));
            }),
            ErrorCode::kInvalidArgument);
  binding.BindInput("x", floats({1, 4}, {1, 2, 3, 4}));
  binding.BindOutput(mine.GetOutputNames()[2], MemoryInfo("Cpu", AllocatorType::kDevice));
  mine.Run(RunOptions().SetOnlyExecutePathToFetches(true), binding);
  EXPECT_THAT(to_floats(binding.GetOutputValues()[0]), ElementsAre(1, 2, 3, 4));
}

TEST(MalformedModel, IsTellsNonsenseFromModelsThatAreWrong) {
  const std::string text = "this is no model, and nothing that could be taken for one";
  EXPECT_THROW(open(text), MalformedModel);
  EXPECT_THROW(open(""), MalformedModel);
  ModelBuilder model;
  model.output(model.node("NoSuchOperator", {model.input("x", ElementType::kFloat, {"1"})})[0]);
  const std::string bytes = model.bytes();
  try {
    open(bytes);
    FAIL() << "expected an Error";
  } catch (const MalformedModel&) {
    FAIL() << "expected another Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotImplemented);
  }
}

TEST(ModelMetadata, IsWhatTheFileSays) {
  const std::string bytes = three_outputs();
  const Session session = open(bytes);
  EXPECT_EQ(session.GetModelMetadata().graph_name, "test");
  const Allocator allocator;
  EXPECT_EQ(session.GetModelMetadata().LookupCustomMetadataMapAllocated("none", allocator), nullptr);
}

}  // namespace plimsoll
