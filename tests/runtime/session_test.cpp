#include "runtime/session_support.h"

namespace plimsoll {

// The model loads, and some shapes do fit it: the caller is told that these do not.
TEST(Session, ShapesThatDoNotFitEachOtherAreTheCallersMistake) {
  ModelBuilder model;
  Edge* a = model.input("a", ElementType::kFloat, {"rows", "inner"});
  Edge* b = model.input("b", ElementType::kFloat, {"other", "columns"});
  model.output(model.node("MatMul", {a, b})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  EXPECT_NO_THROW(session.Prepare({{"a", {2, 3}}, {"b", {3, 4}}}));
  try {
    session.Prepare({{"a", {2, 3}}, {"b", {5, 4}}});
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_NE(std::string(error.what()).find("'b' [5, 4]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("MatMul"), std::string::npos) << error.what();
  }
}

// Kernels read whole elements: weights that lie askew in the caller's bytes are copied, and the copy is
// charged.
TEST(Session, WeightsOfAModelInMemoryAreAligned) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"2"});
  model.output(model.node("PRelu", {x, model.constant<float>("slope", {1}, {0.25f})})[0]);
  const std::string bytes = model.bytes();
  int copied = 0;
  for (size_t shift = 0; shift < alignof(float); ++shift) {
    const std::string shifted = std::string(shift, ' ') + bytes;
    Session session(Env(), shifted.data() + shift, bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
    if (session.GetMemoryReport()[Account::kWeights].now_bytes > 0) ++copied;
    const auto result = session.Run({}, {"x"}, {floats({2}, {-2, 2})}, {session.GetOutputs()[0].name});
    EXPECT_EQ(to_floats(result[0]), (std::vector<float>{-0.5f, 2}));
  }
  EXPECT_EQ(copied, 3);
}

TEST(Session, RejectsWrongInputs) {
  const std::string bytes = chain_model(1);
  Session session = open(bytes);
  const std::string output = session.GetOutputs()[0].name;
  const Value good = Value::CreateTensor(ElementType::kFloat, {1, 64});
  EXPECT_EQ(code_of([&] { session.Run({}, {}, {}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"z"}, {good}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"x"}, {good}, {"z"}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kInt64, {1, 64})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 65})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code_of([&] { session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {64})}, {output}); }),
      ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW(session.Run({}, {"x"}, {good}, {output}));
}

TEST(Session, BindingRunsIntoTheCallersMemory) {
  const std::string bytes = chain_model(2);
  Session session = open(bytes);
  std::vector<float> in(128, 1.0f), out(128, 0.0f);
  IoBinding binding(session);
  binding.BindInput("x", Value::CreateTensor(in.data(), in.size(), {2, 64}));
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {2, 64}));
  session.Run({}, binding);
  EXPECT_NEAR(out[100], 1 / (1 + std::exp(-3.0)), 1e-6);
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {1, 128}));
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
}

TEST(Session, RefusesTheBindingOfAnother) {
  const std::string bytes = chain_model(1);
  ModelBuilder none;
  none.output(none.constant<float>("c", {1}, {1}));
  const std::string empty = none.bytes();
  Session session = open(bytes), other = open(empty);
  IoBinding binding(other);
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
  IoBinding own(session);
  own.BindInput("x", Value::CreateTensor(ElementType::kFloat, {1, 64}));
  own.BindOutput(session.GetOutputs()[0].name);
  Session moved = std::move(session);
  EXPECT_NO_THROW(moved.Run({}, own));
}

}  // namespace plimsoll
