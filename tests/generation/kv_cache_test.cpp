// Generation over a cache that is bound in place: past and present are one buffer of the caller's.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plimsoll/io_binding.h"
#include "plimsoll/session.h"
#include "support/heap_watch.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kHead = 16, kCapacity = 24;
constexpr int64_t kWidth = kHeads * kHead, kKvWidth = kKvHeads * kHead;

Attribute integer(std::string_view name, int64_t value) {
  return ModelBuilder::integer(name, value);
}

class CacheModel {
 public:
  CacheModel() {
    imports_[0] = {"", 17}, imports_[1] = {kMicrosoft, 1};
    builder_.graph().opsets = imports_;
  }
  std::string grouped() {
    auto [past_key, past_value] = caches();
    Edge* q = builder_.input("q", ElementType::kFloat, {"1", "s", std::to_string(kWidth)});
    Edge* k = builder_.input("k", ElementType::kFloat, {"1", "s", std::to_string(kKvWidth)});
    Edge* v = builder_.input("v", ElementType::kFloat, {"1", "s", std::to_string(kKvWidth)});
    Edge* lengths = builder_.input("lengths", ElementType::kInt32, {"1"});
    Edge* mask = builder_.input("mask", ElementType::kInt32, {"1", "t"});
    Edge* one = builder_.constant<int64_t>("one", {}, {1});
    Edge* size = builder_.node("Gather", {builder_.node("Shape", {mask})[0], one})[0];
    Edge* total = builder_.node("Cast", {size}, 1, {integer("to", 6)})[0];
    std::vector<float> angles(static_cast<size_t>(kCapacity * kHead / 2));
    for (size_t i = 0; i < angles.size(); ++i) angles[i] = static_cast<float>(i % 7) / 7;
    Edge* cosine = builder_.constant<float>("cos", {kCapacity, kHead / 2}, angles);
    Edge* sine = builder_.constant<float>("sin", {kCapacity, kHead / 2}, angles);
    add("GroupQueryAttention", {q, k, v, past_key, past_value, lengths, total, cosine, sine},
        {integer("num_heads", kHeads), integer("kv_num_heads", kKvHeads), integer("do_rotary", 1)});
    return builder_.bytes();
  }
  std::string multi_head() {
    auto [past_key, past_value] = caches();
    std::vector<Edge*> inputs;
    for (const char* name : {"q", "k", "v"})
      inputs.push_back(builder_.input(name, ElementType::kFloat, {"1", "s", std::to_string(kKvWidth)}));
    Edge* length = builder_.input("lengths", ElementType::kInt32, {"1"});
    inputs.insert(inputs.end(), {nullptr, nullptr, nullptr, past_key, past_value, length});
    add("MultiHeadAttention", inputs, {integer("num_heads", kKvHeads), integer("unidirectional", 1)});
    return builder_.bytes();
  }

 private:
  static constexpr std::string_view kMicrosoft = "com.microsoft";

  std::pair<Edge*, Edge*> caches() {
    const std::vector<std::string> dims = {"1", std::to_string(kKvHeads), "c", std::to_string(kHead)};
    return {builder_.input("past_key", ElementType::kFloat, dims),
            builder_.input("past_value", ElementType::kFloat, dims)};
  }
  void add(std::string_view op, const std::vector<Edge*>& inputs, const std::vector<Attribute>& attributes) {
    std::vector<Edge*> outputs;
    for (const char* name : {"y", "present_key", "present_value"})
      outputs.push_back(builder_.graph().add_edge(name));
    builder_.graph().add_node(kMicrosoft, op, "attention", inputs, outputs, attributes);
    for (Edge* edge : outputs) builder_.output(edge);
  }

  ModelBuilder builder_;
  OpsetImport imports_[2];
};

Value random_floats(std::mt19937& random, const std::vector<int64_t>& shape) {
  Value value = Value::CreateTensor(ElementType::kFloat, shape);
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (size_t i = 0; i < value.GetElementCount(); ++i)
    value.GetTensorMutableData<float>()[i] = distribution(random);
  return value;
}

Value number(int32_t n) {
  Value value = Value::CreateTensor(ElementType::kInt32, {1});
  *value.GetTensorMutableData<int32_t>() = n;
  return value;
}

Value row_of(const Value& value, int64_t row) {
  const int64_t width = value.GetShape()[2];
  Value one = Value::CreateTensor(ElementType::kFloat, {1, 1, width});
  std::copy_n(value.GetTensorData<float>() + row * width, width, one.GetTensorMutableData<float>());
  return one;
}

void expect_row(const Value& found, const Value& expected, int64_t row) {
  const int64_t width = expected.GetShape()[2];
  for (int64_t i = 0; i < width; ++i)
    ASSERT_NEAR(found.GetTensorData<float>()[i], expected.GetTensorData<float>()[row * width + i], 2e-5)
        << "token " << row << ", element " << i;
}

// Tokens one by one, with caches that never move. `length` says how many there are before, or their number
// less one.
void generate(Session& session, std::vector<Value> whole, const Value& expected, bool counts_itself) {
  IoBinding binding(session);
  Value cache[2], length = number(0),
                  y = Value::CreateTensor(ElementType::kFloat, {1, 1, whole[0].GetShape()[2]});
  for (Value& value : cache)
    value = Value::CreateTensor(ElementType::kFloat, {1, kKvHeads, kCapacity, kHead});
  const char* names[] = {"q", "k", "v"};
  Value token[3];
  for (size_t i = 0; i < 3; ++i) {
    token[i] = row_of(whole[i], 0);
    binding.BindInput(names[i], token[i]);
  }
  binding.BindInput("past_key", cache[0]);
  binding.BindInput("past_value", cache[1]);
  binding.BindOutput("present_key", cache[0]);
  binding.BindOutput("present_value", cache[1]);
  binding.BindOutput("y", y);
  binding.BindInput("lengths", length);
  if (counts_itself) binding.BindInput("mask", Value::CreateTensor(ElementType::kInt32, {1, kCapacity}));
  const RunOptions options;
  for (int64_t t = 0; t < kCapacity; ++t) {
    for (size_t i = 0; i < 3; ++i) {
      const Value row = row_of(whole[i], t);
      std::copy_n(row.GetTensorData<float>(), row.GetElementCount(), token[i].GetTensorMutableData<float>());
    }
    *length.GetTensorMutableData<int32_t>() = static_cast<int32_t>(t);
    heap::Watch watch;
    session.Run(options, binding);
    const long calls = watch.stop();
    if (t > 0 && !kSanitized) {
      EXPECT_EQ(calls, 0) << "token " << t << "\n" << watch.first_caller();
    }
    expect_row(y, expected, t);
  }
}

}  // namespace

TEST(KvCache, GroupQueryAttentionGrowsInPlaceWithoutHeapCalls) {
  const std::string bytes = CacheModel().grouped();
  Session session(Env(), bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  std::mt19937 random(1);
  std::vector<Value> whole = {random_floats(random, {1, kCapacity, kWidth}),
                              random_floats(random, {1, kCapacity, kKvWidth}),
                              random_floats(random, {1, kCapacity, kKvWidth})};
  // A prompt of all tokens at once.
  IoBinding binding(session);
  const char* names[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i) binding.BindInput(names[i], whole[i]);
  for (const char* name : {"past_key", "past_value"})
    binding.BindInput(name, Value::CreateTensor(ElementType::kFloat, {1, kKvHeads, 0, kHead}));
  binding.BindInput("lengths", number(kCapacity - 1));
  binding.BindInput("mask", Value::CreateTensor(ElementType::kInt32, {1, kCapacity}));
  binding.BindOutput("y");
  session.Run({}, binding);
  generate(session, whole, binding.GetOutputValues()[0], true);
}

TEST(KvCache, MultiHeadAttentionGrowsInPlaceWithoutHeapCalls) {
  const std::string bytes = CacheModel().multi_head();
  Session session(Env(), bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  std::mt19937 random(2);
  std::vector<Value> whole;
  for (int i = 0; i < 3; ++i) whole.push_back(random_floats(random, {1, kCapacity, kKvWidth}));
  IoBinding binding(session);
  const char* names[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i) binding.BindInput(names[i], whole[i]);
  for (const char* name : {"past_key", "past_value"})
    binding.BindInput(name, Value::CreateTensor(ElementType::kFloat, {1, kKvHeads, kCapacity, kHead}));
  binding.BindInput("lengths", number(0));
  binding.BindOutput("y");
  session.Run({}, binding);
  generate(session, whole, binding.GetOutputValues()[0], false);
}

// What is told for the longest cache is enough for every shorter one.
TEST(KvCache, ToldPeakOfTheLongestHoldsForAllShorter) {
  const std::string bytes = CacheModel().grouped();
  Session session(Env(), bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  const auto told = [&](int64_t tokens, int64_t length) {
    const Shapes shapes = {{"q", {1, tokens, kWidth}},
                           {"k", {1, tokens, kKvWidth}},
                           {"v", {1, tokens, kKvWidth}},
                           {"past_key", {1, kKvHeads, length, kHead}},
                           {"lengths", {1}},
                           {"past_value", {1, kKvHeads, length, kHead}},
                           {"mask", {1, length}}};
    Session fresh(Env(), bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
    const Plan plan = fresh.Prepare(shapes);
    EXPECT_FALSE(plan.depends_on_data);
    return plan.peak_bytes;
  };
  for (int64_t tokens : {1, 20}) {
    const int64_t longest = told(tokens, kCapacity);
    for (int64_t length = tokens; length < kCapacity; ++length)
      EXPECT_LE(told(tokens, length), longest) << length;
  }
}

}  // namespace plimsoll
