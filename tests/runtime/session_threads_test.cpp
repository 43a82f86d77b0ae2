#include <thread>

#include "runtime/session_support.h"

namespace plimsoll {

TEST(Session, CancelsAndKeepsDeadlines) {
  const std::string bytes = chain_model(3);
  Session session = open(bytes);
  const std::vector<Value> input = {Value::CreateTensor(ElementType::kFloat, {1, 64})};
  const std::string output = session.GetOutputs()[0].name;
  RunOptions cancelled;
  cancelled.SetTerminate();
  EXPECT_EQ(code_of([&] { session.Run(cancelled, {"x"}, input, {output}); }), ErrorCode::kCancelled);
  RunOptions late;
  late.SetDeadline(std::chrono::steady_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(code_of([&] { session.Run(late, {"x"}, input, {output}); }), ErrorCode::kDeadlineExceeded);
  EXPECT_NO_THROW(session.Run({}, {"x"}, input, {output}));
}

TEST(Session, ManyThreadsShareIt) {
  const std::string bytes = chain_model(10);
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(3));
  const std::string output = session.GetOutputs()[0].name;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int64_t batch = 1 + (t + i) % 4;
        const float x = 0.01f * static_cast<float>(t);
        const Value input = floats({batch, 64}, std::vector<float>(static_cast<size_t>(batch) * 64, x));
        const auto result = session.Run({}, {"x"}, {input}, {output});
        const double expected = 1 / (1 + std::exp(-11.0 * static_cast<double>(x)));
        for (float y : to_floats(result[0])) wrong += std::abs(static_cast<double>(y) - expected) > 1e-5;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, SaysBusyWhenAsked) {
  const std::string bytes = chain_model(20);
  SessionOptions options;
  options.when_busy = BusyPolicy::kError;
  Session session = open(bytes, options);
  const std::string output = session.GetOutputs()[0].name;
  // True if the run was refused because another one held the only slot.
  auto refused = [&](int64_t batch) {
    try {
      session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {batch, 64})}, {output});
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBusy);
      return true;
    }
  };
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) refused(2000);
  });
  bool seen = false;
  for (int i = 0; i < 1000000 && !seen; ++i) seen = refused(1);
  stop = true;
  other.join();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(refused(1));
}

TEST(Session, ProfileCountsConcurrentRuns) {
  const std::string bytes = chain_model(50);
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(4));
  const std::string output = session.GetOutputs()[0].name;
  session.EnableProfiling(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 64})}, {output});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Session::ProfileEntry& entry : session.GetProfile()) EXPECT_EQ(entry.count, 2000) << entry.node;
}

// A run that is cancelled or late while it waits for its turn ends at once.
TEST(Session, StopsWhileWaiting) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.body_input(*body, "state", ElementType::kFloat, {"n"});
  body->outputs.push_back(go_on);
  body->outputs.push_back(model.node_in(*body, "Neg", {state})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string output = session.GetOutputs()[0].name;
  Value forever = Value::CreateTensor(ElementType::kInt64, {});
  *forever.GetTensorMutableData<int64_t>() = int64_t{1} << 60;
  const std::vector<Value> inputs = {forever, floats({1}, {1})};
  RunOptions first;
  std::thread runner([&] { code_of([&] { session.Run(first, {"count", "x"}, inputs, {output}); }); });
  std::thread rescue([&] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    first.SetTerminate();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto start = std::chrono::steady_clock::now();
  RunOptions late;
  late.SetDeadline(start + std::chrono::milliseconds(20));
  EXPECT_EQ(code_of([&] {
              session.Run(late, {"count", "x"}, inputs, {output});
            }),
            ErrorCode::kDeadlineExceeded);
  RunOptions cancelled;
  cancelled.SetTerminate();
  EXPECT_EQ(code_of([&] {
              session.Run(cancelled, {"count", "x"}, inputs, {output});
            }),
            ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1500));
  first.SetTerminate();
  runner.join();
  rescue.join();
}

}  // namespace plimsoll
