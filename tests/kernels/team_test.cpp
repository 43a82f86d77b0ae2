#include "kernels/team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <set>
#include <thread>

namespace plimsoll::kernels {
namespace {

TEST(Team, EveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8, 2, 17}) {
    for (const int64_t tasks : {0, 1, 2, 3, 7, 64, 1001}) {
      std::vector<int> calls(static_cast<size_t>(tasks));
      parallel_for(threads, tasks, [&](int64_t task) { ++calls[static_cast<size_t>(task)]; });
      EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(tasks), 1)) << threads << " threads";
    }
  }
}

TEST(Team, WhichThreadRunsATaskIsFixed) {
  const auto threads_of = [] {
    std::vector<std::thread::id> threads(10);
    parallel_for(4, 10,
                 [&](int64_t task) { threads[static_cast<size_t>(task)] = std::this_thread::get_id(); });
    return threads;
  };
  const auto first = threads_of();
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4U);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  parallel_for(2, 5, [](int64_t) {});
  EXPECT_EQ(threads_of(), first);
}

TEST(Team, ALoopInALoopIsNotDividedAgain) {
  std::atomic<int> calls = 0, elsewhere = 0;
  parallel_for(3, 6, [&](int64_t) {
    const std::thread::id own = std::this_thread::get_id();
    parallel_for(4, 5, [&](int64_t) {
      ++calls;
      elsewhere += std::this_thread::get_id() != own;
    });
  });
  EXPECT_EQ(calls, 30);
  EXPECT_EQ(elsewhere, 0);
}

// Who waits has gone to sleep meanwhile: workers before the loop, the caller in it.
TEST(Team, SleepersAreWoken) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> calls = 0;
    parallel_for(3, 3, [&](int64_t task) {
      if (task == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++calls;
    });
    EXPECT_EQ(calls, 3);
  }
}

TEST(Team, EveryCallingThreadHasItsOwn) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::vector<int64_t> parts(16);
        parallel_for(3, 16, [&](int64_t task) { parts[static_cast<size_t>(task)] = task; });
        sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 8 * 200 * 120);
}

// As programs do that use us and fork: the child makes threads of its own, and ends as it should.
TEST(Team, AForkedChildGoesOn) {
  parallel_for(3, 3, [](int64_t) {});
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> calls = 0;
    parallel_for(3, 6, [&](int64_t) { ++calls; });
    std::thread([] { parallel_for(2, 2, [](int64_t) {}); }).join();
    std::quick_exit(calls == 6 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::atomic<int> calls = 0;
  parallel_for(3, 6, [&](int64_t) { ++calls; });
  EXPECT_EQ(calls, 6);
}

}  // namespace
}  // namespace plimsoll::kernels
