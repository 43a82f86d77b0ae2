// What a pool promises when its workers do not behave: each job one outcome, and the pool goes on.
#include <signal.h>

#include <atomic>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "isolate/pool_support.h"

namespace plimsoll::pool_test {
namespace {

using testing::TestWithParam;

struct Bad {
  std::string request;
  Kind kind;
  std::string says;
};

class BadJob : public TestWithParam<Bad> {};

TEST_P(BadJob, HasItsOutcomeAndThePoolGoesOn) {
  PoolOptions options = echo_options(1);
  options.limits.wall_time = milliseconds(GetParam().says == "in time" ? 300 : 60'000);
  options.limits.cpu_time = milliseconds(GetParam().request == "spin" ? 200 : 60'000);
  options.result_bytes = 1 << 20;
  Pool pool(options);
  const Outcome outcome = ask(pool, GetParam().request);
  EXPECT_EQ(outcome.kind, GetParam().kind) << outcome.message;
  EXPECT_NE(outcome.message.find(GetParam().says), std::string::npos) << outcome.message;
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(ask(pool, "echo after").answer, "after");
}

INSTANTIATE_TEST_SUITE_P(Pool, BadJob,
                         testing::Values(Bad{"exit 0", Kind::kWorkerDied, "exited with code 0"},
                                         Bad{"exit 3", Kind::kWorkerDied, "exited with code 3"},
                                         Bad{"signal 10", Kind::kWorkerDied, "signal 10"},
                                         Bad{"signal 9", Kind::kWorkerDied, "signal 9"},
                                         Bad{"close", Kind::kWorkerDied, ""},
                                         Bad{"mute", Kind::kWorkerDied, ""},
                                         Bad{"sleep 100000", Kind::kTimeout, "in time"},
                                         Bad{"spin", Kind::kTimeout, "CPU time of 200 ms"},
                                         Bad{"garbage", Kind::kTooLarge, "18446744073709551615"},
                                         Bad{"announce 1048577", Kind::kTooLarge, "1048577"},
                                         Bad{"long 2000000", Kind::kTooLarge, "2000000"}));

TEST(PoolFaults, AnAnswerTooManyEndsTheWorkerNotTheNextJob) {
  Pool pool(echo_options(1));
  EXPECT_EQ(ask(pool, "twice").answer, "first");
  ASSERT_TRUE(eventually([&] { return pool.Statistics().workers_died == 1; }));
  const std::string next = ask(pool, "echo next").answer;
  EXPECT_EQ(next, "next");
}

TEST(PoolFaults, MemoryLimitIsReportedAsSuch) {
  PoolOptions options = echo_options(1);
  options.limits.memory_bytes = 256 << 20;
  Pool pool(options);
  EXPECT_EQ(ask(pool, "touch 20000000").kind, Kind::kAnswer);
  const Outcome outcome = ask(pool, "touch 2000000000");
  if (!has_cgroup(outcome.receipt)) GTEST_SKIP() << "no memory cgroup: " << outcome.receipt.mechanism;
  EXPECT_EQ(outcome.kind, Kind::kMemoryLimit) << outcome.message;
  EXPECT_TRUE(outcome.receipt.limit_hit);
  EXPECT_EQ(ask(pool, "echo after").answer, "after");
}

TEST(PoolFaults, AJobsOwnWallTimeGoesBeforeThePools) {
  PoolOptions options = echo_options(1);
  options.limits.wall_time = milliseconds(100'000);
  Pool pool(options);
  EXPECT_EQ(ask(pool, "sleep 100000", {false, milliseconds(50)}).kind, Kind::kTimeout);
}

TEST(PoolFaults, OnlyRepeatableJobsRunTwice) {
  const std::string log = testing::TempDir() + "/pool_repeat." + std::to_string(getpid());
  const auto lines = [&] {
    std::ifstream file(log);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  // Writes its line, then its worker dies before the answer.
  const std::string request = "log " + log + " x";
  PoolOptions options = echo_options(1);
  Pool pool(options);
  const auto run_and_kill = [&](bool repeatable) {
    std::remove(log.c_str());
    EXPECT_EQ(ask(pool, "echo warm").answer, "warm");
    std::future<Outcome> future = pool.Submit("log " + log + " x" + std::string(1000, 'x'), {repeatable, {}});
    EXPECT_TRUE(eventually([&] { return lines() >= 1; }));
    for (const int pid : pool.WorkerPids()) kill(pid, SIGKILL);
    return future.get();
  };
  for (int i = 0; i < 8; ++i) {  // the kill may come after the answer
    const Outcome once = run_and_kill(false);
    EXPECT_EQ(lines(), 1);
    EXPECT_EQ(once.attempts, 1);
    const Outcome twice = run_and_kill(true);
    EXPECT_EQ(twice.kind, Kind::kAnswer) << twice.message;
    EXPECT_EQ(lines(), twice.attempts);
  }
  EXPECT_GT(pool.Statistics().repeated, 0);
  std::remove(log.c_str());
}

TEST(PoolFaults, ARepeatableJobIsNotRepeatedForEver) {
  Pool pool(echo_options(1));
  const Outcome outcome = ask(pool, "exit 1", {true, {}});
  EXPECT_EQ(outcome.kind, Kind::kWorkerDied);
  EXPECT_EQ(outcome.attempts, 2);
}

TEST(PoolFaults, ADeadWorkerLosesNoOtherJob) {
  Pool pool(echo_options(2));
  std::vector<std::future<Outcome>> others;
  std::future<Outcome> bad = pool.Submit("exit 1");
  for (int i = 0; i < 50; ++i) {
    others.push_back(pool.Submit("sleep 1"));
    if (i % 10 == 0) others.push_back(pool.Submit("echo x"));
  }
  EXPECT_EQ(bad.get().kind, Kind::kWorkerDied);
  for (auto& other : others) EXPECT_EQ(other.get().kind, Kind::kAnswer);
}

TEST(PoolFaults, WorkersThatCannotStartFailJobsWithTheirLastWords) {
  PoolOptions options = echo_options(2, {"--say", "no such module: torch", "--exit", "1"});
  Pool pool(options);
  const Outcome outcome = ask(pool, "echo x");
  EXPECT_EQ(outcome.kind, Kind::kStartFailed);
  EXPECT_EQ(outcome.attempts, 0);
  EXPECT_NE(outcome.message.find("exited with code 1"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("no such module: torch"), std::string::npos) << outcome.message;
  EXPECT_EQ(code_of([&] { pool.WaitReady(milliseconds(20'000)); }), ErrorCode::kIo);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LE(pool.Statistics().workers_started, 6);  // it backs off
}

TEST(PoolFaults, AWorkerMaySayWhyItCannotStart) {
  Pool pool(echo_options(1, {"--refuse", "wrong version"}));
  const Outcome outcome = ask(pool, "echo x");
  EXPECT_EQ(outcome.kind, Kind::kStartFailed);
  EXPECT_NE(outcome.message.find("wrong version"), std::string::npos) << outcome.message;
}

TEST(PoolFaults, AWorkerThatIsNeverReadyIsKilled) {
  PoolOptions options = echo_options(1, {"--never", "1"});
  options.start_timeout = milliseconds(50);
  Pool pool(options);
  const Outcome outcome = ask(pool, "echo x");
  EXPECT_EQ(outcome.kind, Kind::kStartFailed);
  EXPECT_NE(outcome.message.find("not ready within 50 ms"), std::string::npos) << outcome.message;
}

TEST(PoolFaults, WhatAWorkerPrintsWithoutEndIsNotKept) {
  PoolOptions options = echo_options(1);
  options.worker.argv = {"/bin/sh", "-c", "head -c 200000000 /dev/zero >&2; exit 4"};
  Pool pool(options);
  const Outcome outcome = ask(pool, "echo x");
  EXPECT_EQ(outcome.kind, Kind::kStartFailed);
  EXPECT_LT(outcome.message.size(), 10'000u);
}

// Under load a worker is killed every 100 ms. Each job writes its number to a file as it runs.
// PLIMSOLL_CHAOS_SECONDS makes it longer.
TEST(PoolFaults, ChaosLosesNothingAndRepeatsNothing) {
  const char* asked = std::getenv("PLIMSOLL_CHAOS_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked ? std::atoi(asked) : 5);
  const std::string log = testing::TempDir() + "/pool_chaos." + std::to_string(getpid());
  std::remove(log.c_str());
  std::vector<std::unique_ptr<std::atomic<int>>> outcomes;  // by job
  std::map<Kind, int> kinds;                                // pool's thread only
  std::atomic<int64_t> delivered = 0;
  PoolStatistics statistics;
  {
    Pool pool(echo_options(4));
    std::thread killer([&] {
      std::mt19937 random(7);
      while (std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(milliseconds(100));
        const std::vector<int> pids = pool.WorkerPids();
        if (!pids.empty()) kill(pids[random() % pids.size()], SIGKILL);
      }
    });
    while (std::chrono::steady_clock::now() < end) {
      outcomes.push_back(std::make_unique<std::atomic<int>>(0));
      pool.Submit("log " + log + " " + std::to_string(outcomes.size() - 1), {},
                  [&, count = outcomes.back().get()](const Outcome& outcome) {
                    ++*count;
                    ++kinds[outcome.kind];
                    ++delivered;
                  });
    }
    killer.join();
    EXPECT_TRUE(eventually([&] { return delivered == static_cast<int64_t>(outcomes.size()); }));
    statistics = pool.Statistics();
  }
  for (const auto& count : outcomes) ASSERT_EQ(*count, 1);
  std::vector<int> runs(outcomes.size());
  std::ifstream file(log);
  for (size_t job; file >> job;) ++runs.at(job);
  EXPECT_LE(*std::max_element(runs.begin(), runs.end()), 1);
  EXPECT_EQ(kinds[Kind::kAnswer] + kinds[Kind::kWorkerDied], static_cast<int>(outcomes.size()));
  EXPECT_GT(statistics.workers_died, 10);
  EXPECT_GT(kinds[Kind::kAnswer], 100);
  RecordProperty("jobs", static_cast<int>(outcomes.size()));
  std::printf("chaos: %zu jobs, %d answered, %d lost their worker, %lld workers died\n", outcomes.size(),
              kinds[Kind::kAnswer], kinds[Kind::kWorkerDied],
              static_cast<long long>(statistics.workers_died));
  std::remove(log.c_str());
}

}  // namespace
}  // namespace plimsoll::pool_test
