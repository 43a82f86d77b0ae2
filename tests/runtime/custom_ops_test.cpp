// Operators from a shared library: planned, counted and run like ours.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnx/tiny_model.h"
#include "runtime/session_support.h"
#include "support/places.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tiny::Proto;

Proto float_attribute(const std::string& name, float value) {
  return tiny::attribute(name, AttributeType::kFloat).real(tiny::attribute_field::kFloat, value);
}
Proto int_attribute(const std::string& name, int64_t value) {
  return tiny::attribute(name, AttributeType::kInt).number(tiny::attribute_field::kInt, value);
}

// y = op(x), with something of ours before and after it.
std::string model_with(const std::string& domain, const std::string& op, const std::vector<Proto>& attributes,
                       const Proto& type = tiny::tensor_type({"n"})) {
  const Proto graph =
      tiny::graph({tiny::node("Identity", {"x"}, {"a"}), tiny::node(op, {"a"}, {"b"}, attributes, domain),
                   tiny::node("Identity", {"b"}, {"y"})},
                  {tiny::value("x", type)}, {tiny::value("y", type)});
  return tiny::model(graph).message(tiny::model_field::kOpsetImport, tiny::opset(domain, 1)).bytes;
}

SessionOptions with_ops(const std::string& library = test_program("libtest_op_library.so")) {
  SessionOptions options;
  return options.SetIntraOpNumThreads(1).RegisterCustomOpsLibrary(library);
}

std::string what(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return "";
}

Value run(Session& session, const Value& x) {
  return session.Run(RunOptions(), {"x"}, {x}, {"y"})[0];
}

class CustomOpFile : public ::testing::Test {
 protected:
  CustomOpFile() {
    std::string name = "/tmp/plimsoll-custom.XXXXXX";
    room_ = ::mkdtemp(name.data());
  }
  ~CustomOpFile() override { std::filesystem::remove_all(room_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(room_ / name, std::ios::binary) << bytes;
    return room_ / name;
  }

 private:
  std::filesystem::path room_;
};

}  // namespace

TEST(CustomOps, TheExampleRuns) {
  const std::string bytes = model_with("example", "SoftShrink", {float_attribute("lambd", 1)});
  Session session = open(bytes, with_ops(test_program("libsoft_shrink.so")));
  EXPECT_THAT(to_floats(run(session, floats({4}, {-3, -1, 0.5f, 2}))), ElementsAre(-2, 0, 0, 1));
  const std::string wrong = model_with("example", "SoftShrink", {float_attribute("lambd", -1)});
  EXPECT_THAT(
      what([&] { open(wrong, with_ops(test_program("libsoft_shrink.so"))); }, ErrorCode::kInvalidModel),
      HasSubstr("expected at least 0, found -1"));
  const std::string misspelt = model_with("example", "SoftShrink", {float_attribute("lambda", 2)});
  EXPECT_THAT(open(misspelt, with_ops(test_program("libsoft_shrink.so"))).GetWarnings(),
              ElementsAre(HasSubstr("unknown attribute 'lambda'")));
}

TEST_F(CustomOpFile, ScratchIsPlannedAndCounted) {
  const std::string path = write("model.onnx", model_with("test", "Reverse", {}, tiny::tensor_type({50000})));
  const Plan plan = Model(Env(), path, with_ops()).MakePlan();
  int64_t scratch = 0;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.scratch) scratch = buffer.size_bytes;
  }
  EXPECT_EQ(scratch, 200'000);
  Session session(Env(), path, with_ops().SetMemoryLimit(plan.minimum_limit_bytes));
  Value x = Value::CreateTensor(ElementType::kFloat, {50000});
  for (int i = 0; i < 50000; ++i) x.GetTensorMutableData<float>()[i] = static_cast<float>(i);
  const Value y = run(session, x);
  EXPECT_EQ(y.GetTensorData<float>()[0], 49999);
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
  EXPECT_EQ(code_of([&] { Session(Env(), path, with_ops().SetMemoryLimit(plan.minimum_limit_bytes - 1)); }),
            ErrorCode::kBudgetExceeded);
  session.EnableProfiling(true);
  run(session, x);
  for (const Session::ProfileEntry& entry : session.GetProfile())
    EXPECT_TRUE(entry.op != "Reverse" || entry.operations == 7);
}

TEST(CustomOps, SizesThatOnlyTheDataTellsLiveInDynamic) {
  const std::string bytes = model_with("test", "Positives", {});
  Session session = open(bytes, with_ops());
  EXPECT_THAT(to_floats(run(session, floats({4}, {-3, 7, 0, 2}))), ElementsAre(7, 2));
  EXPECT_GT(session.GetMemoryReport()[Account::kDynamic].peak_bytes, 0);
  EXPECT_EQ(run(session, floats({1}, {-3})).GetShape(), (std::vector<int64_t>{0}));
}

TEST(CustomOps, StringsAreMadeInTheRun) {
  const std::string bytes = model_with("test", "Shout", {}, tiny::tensor_type({"n"}, ElementType::kString));
  Session session = open(bytes, with_ops());
  const Value y = run(session, Value::CreateStrings({"a", "bc"}, {2}));
  EXPECT_EQ(y.GetString(1), "bc!");
}

TEST(CustomOps, WhateverAFunctionDoesWrongIsAnError) {
  const std::pair<int64_t, const char*> at_load[] = {
      {1, "attrs of this custom operator threw: attrs went wrong"},
      {2, "infer went wrong"},
      {3, "threw something"},
      {4, "left output 0 without a type"},
      {5, "the type 4711"},
      {6, "would have shape"},
      {7, "a text made on the spot"},
      {8, "divided by zero"},
      {9, "select went wrong"},
      {10, "-64 bytes of scratch"},
  };
  for (const auto& [place, says] : at_load) {
    const std::string bytes = model_with("test", "Fails", {int_attribute("where", place)});
    const std::string error = what(
        [&] {
          open(bytes, with_ops()).Prepare({{"x", {2}}});
        },
        ErrorCode::kInvalidModel);
    EXPECT_THAT(error, HasSubstr(says));
    EXPECT_THAT(error, HasSubstr("(Fails)")) << "names the node";
  }
  const std::string missing = model_with("test", "Fails", {});
  EXPECT_THAT(what([&] { open(missing, with_ops()); }, ErrorCode::kInvalidModel), HasSubstr("is missing"));
  const std::string wrong_type = model_with("test", "Fails", {float_attribute("where", 1)});
  EXPECT_THAT(what([&] { open(wrong_type, with_ops()); }, ErrorCode::kInvalidModel),
              HasSubstr("expected type"));
  for (const auto& [place, says] : {std::pair(11, "run went wrong"), std::pair(12, "run says no")}) {
    const std::string bytes = model_with("test", "Fails", {int_attribute("where", place)});
    Session session = open(bytes, with_ops());
    EXPECT_THAT(what([&] { run(session, floats({1}, {1})); }, ErrorCode::kInvalidArgument), HasSubstr(says));
  }
}

TEST_F(CustomOpFile, LibrariesThatCannotBeUsedAreErrors) {
  const std::string bytes = model_with("test", "Reverse", {});
  EXPECT_THAT(what([&] { open(bytes, with_ops("/tmp/nobody-has-this.so")); }, ErrorCode::kIo),
              HasSubstr("cannot be loaded"));
  EXPECT_THAT(what([&] { open(bytes, with_ops(write("text.so", "no library"))); }, ErrorCode::kIo),
              HasSubstr("cannot be loaded"));
  EXPECT_THAT(what([&] { open(bytes, with_ops(test_program("libtest_op_library_newer.so"))); },
                   ErrorCode::kInvalidArgument),
              HasSubstr("expected version 1 of the contract, found 2"));
  EXPECT_THAT(what([&] { open(bytes, with_ops(test_program("libtest_op_library_silent.so"))); },
                   ErrorCode::kInvalidArgument),
              HasSubstr("expected the function plimsoll_custom_ops"));
  EXPECT_THAT(
      what([&] { open(bytes, with_ops().RegisterCustomOpsLibrary(test_program("libtest_op_library.so"))); },
           ErrorCode::kInvalidArgument),
      HasSubstr("expected no operator test.Reverse yet"));
}

namespace {
const char* never(const PlimsollHost*, PlimsollNode*) {
  return "never";
}
}  // namespace

TEST(CustomOps, OursCannotBeReplaced) {
  const PlimsollOp relu[] = {{"", "Relu", 1, 1, 1, 1, 1, nullptr, never, nullptr, nullptr, never, nullptr}};
  const PlimsollOps table = {PLIMSOLL_CUSTOM_OP_ABI, 1, relu};
  SessionOptions options;
  options.custom_ops.push_back(&table);
  EXPECT_THAT(what([&] { open(chain_model(1), options); }, ErrorCode::kInvalidArgument), HasSubstr("Relu"));
}

TEST_F(CustomOpFile, InspectionListsAllThatIsMissingAtOnce) {
  const Proto branch =
      tiny::graph({tiny::node("Third", {"x"}, {"inner"}, {}, "test")}, {}, {tiny::value("inner")});
  const Proto function =
      Proto()
          .text(tiny::function_field::kName, "F")
          .text(tiny::function_field::kDomain, "local")
          .text(tiny::function_field::kInput, "a")
          .text(tiny::function_field::kOutput, "b")
          .message(tiny::function_field::kNode, tiny::node("Fourth", {"a"}, {"b"}, {}, "test"))
          .message(tiny::function_field::kOpsetImport, tiny::opset("test", 1));
  const Proto graph = tiny::graph(
      {tiny::node("First", {"x"}, {"a"}, {}, "test"), tiny::node("Reverse", {"a"}, {"b"}, {}, "test"),
       tiny::node("If", {"c"}, {"d"}, {tiny::body("then_branch", branch), tiny::body("else_branch", branch)}),
       tiny::node("F", {"d"}, {"y"}, {}, "local")},
      {tiny::value("x"), tiny::value("c", tiny::tensor_type({}, ElementType::kBool))}, {tiny::value("y")});
  const std::string path =
      write("model.onnx", tiny::model(graph)
                              .message(tiny::model_field::kOpsetImport, tiny::opset("test", 1))
                              .message(tiny::model_field::kOpsetImport, tiny::opset("local", 1))
                              .message(tiny::model_field::kFunctions, function)
                              .bytes);
  EXPECT_THAT(Model(Env(), path).GetInfo().not_implemented,
              ElementsAre("test.First", "test.Fourth", "test.Reverse", "test.Third"));
  EXPECT_THAT(Model(Env(), path, with_ops()).GetInfo().not_implemented,
              ElementsAre("test.First", "test.Fourth", "test.Third"));
}

}  // namespace plimsoll
