#include "kernels/team.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

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

TEST(Team, PartsRunInOrderOnOneThread) {
  for (int round = 0; round < 200; ++round) {
    std::vector<std::thread::id> threads(10);
    std::vector<int> order(10);
    std::atomic<int> next = 0;
    parallel_for(4, 10, [&](int64_t task) {
      threads[static_cast<size_t>(task)] = std::this_thread::get_id();
      order[static_cast<size_t>(task)] = next++;
    });
    EXPECT_EQ(threads[0], std::this_thread::get_id());
    for (const auto& [first, last] : {std::pair<size_t, size_t>{0, 2}, {2, 5}, {5, 7}, {7, 10}}) {
      for (size_t task = first + 1; task < last; ++task) {
        EXPECT_EQ(threads[task], threads[first]);
        EXPECT_LT(order[task - 1], order[task]);
      }
    }
  }
}

std::atomic<bool> is_held = false, is_let_go = false;

void hold(int) {
  is_held = true;
  for (int i = 0; i < 10000 && !is_let_go; ++i) ::usleep(1000);
}

// A thread that gets no processor: held in the handler of a signal.
TEST(Team, TheCallerTakesPartsThatNobodyHasBegun) {
  std::atomic<pthread_t> other = ::pthread_self();
  while (other == ::pthread_self()) {
    parallel_for(2, 2, [&](int64_t task) {
      if (task == 1) other = ::pthread_self();
      ::usleep(100);
    });
  }
  struct sigaction action = {}, before = {};
  action.sa_handler = hold;
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  ASSERT_EQ(::pthread_kill(other, SIGUSR2), 0);
  while (!is_held) ::usleep(100);
  std::vector<std::thread::id> threads(2);
  for (int round = 0; round < 3; ++round) {
    parallel_for(2, 2,
                 [&](int64_t task) { threads[static_cast<size_t>(task)] = std::this_thread::get_id(); });
    EXPECT_EQ(threads, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  }
  is_let_go = true;
  ASSERT_EQ(::sigaction(SIGUSR2, &before, nullptr), 0);
  // It finds its way back into the team.
  std::atomic<int> calls = 0;
  for (int round = 0; round < 100; ++round) parallel_for(2, 6, [&](int64_t) { ++calls; });
  EXPECT_EQ(calls, 600);
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
