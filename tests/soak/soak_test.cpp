// Memory that should be flat is flat, as the kernel sees this process.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>

#include "support/models.h"
#include "support/sanitized.h"

namespace plimsoll {
namespace {

constexpr int64_t kTolerance = 1 << 20;

int64_t rss() {
  return read_process_memory().rss_bytes;
}

void load_run_close(const Env& env, const std::string& path, const Shapes& shapes) {
  Session session(env, path, SessionOptions().SetIntraOpNumThreads(1));
  bind_all(session, shapes);
}

class Soak : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer keeps what was freed for a while: RSS says nothing";
  }
};

}  // namespace

TEST_F(Soak, AThousandCyclesOfLoadRunClose) {
  const std::string path = model_path("digits");
  const Env env;
  const Shapes shapes = {{"image", {16, 1, 8, 8}}};
  for (int i = 0; i < 50; ++i) load_run_close(env, path, shapes);
  const int64_t before = rss();
  for (int i = 0; i < 1000; ++i) load_run_close(env, path, shapes);
  const int64_t after = rss();
  std::printf("1,000 cycles: %ld KiB before, %ld KiB after\n", static_cast<long>(before >> 10),
              static_cast<long>(after >> 10));
  EXPECT_LE(after, before + kTolerance);
  EXPECT_EQ(env.GetMemoryReport().now_bytes, 0);
}

TEST_F(Soak, TwoThousandRandomShapesInOneSession) {
  SessionOptions options;
  options.plan_cache_bytes = 1 << 20;
  Session session(Env(), model_path("digits"), options.SetIntraOpNumThreads(1));
  std::mt19937 random(3);
  auto run = [&](int64_t batch) { bind_all(session, {{"image", {batch, 1, 8, 8}}}); };
  run(200);  // the largest shape decides the arena
  for (int i = 0; i < 100; ++i) run(between(random, 1, 200));
  const int64_t before = rss();
  for (int i = 0; i < 2000; ++i) run(between(random, 1, 200));
  const int64_t after = rss();
  std::printf("2,000 shapes: %ld KiB before, %ld KiB after\n", static_cast<long>(before >> 10),
              static_cast<long>(after >> 10));
  EXPECT_LE(after, before + kTolerance);
  EXPECT_LE(session.GetMemoryReport()[Account::kSession].now_bytes, 4 << 20);
}

TEST_F(Soak, ALargeModelGoesBackWhole) {
  const std::string path = model_path("resnet50");
  if (path.empty()) GTEST_SKIP() << "resnet50 is not in the cache: run ./dev models";
  const Env env;
  const Shapes shapes = {{"input", {1, 3, 224, 224}}};
  load_run_close(env, path, shapes);
  const int64_t before = rss();
  load_run_close(env, path, shapes);
  EXPECT_LE(rss(), before + kTolerance);
}

// Loading holds the weights and one tensor, not the model twice.
TEST_F(Soak, LoadingHoldsTheWeightsAndOneTensor) {
  const std::string path = model_path("bert_L12");
  if (path.empty()) GTEST_SKIP() << "bert_L12 is not in the cache: run ./dev models";
  const Env env;
  const int64_t before = rss();
  const int64_t weights = Model(env, path).GetInfo().weight_bytes;
  // The largest tensor: the table of words, 30522 x 768.
  const int64_t one_tensor = int64_t{30522} * 768 * 4;
  Session session(env, path, SessionOptions().SetIntraOpNumThreads(1));
  const int64_t peak = read_process_memory().peak_rss_bytes;
  std::printf("bert_L12: weights %ld MB, peak RSS above the start %ld MB\n",
              static_cast<long>(weights / 1000000), static_cast<long>((peak - before) / 1000000));
  EXPECT_LE(peak - before, weights + one_tensor);
}

}  // namespace plimsoll
