// Processes that end, stop, exec, fork and hide while they are watched.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "holder.h"
#include "plimsoll/error.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using observed::Holder;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

std::string error_of(int pid, const ObserverOptions& options = {}) {
  try {
    Observer observer(pid, options);
  } catch (const Error& error) {
    return fmt::format("{}: {}", error_code_name(error.code()), error.what());
  }
  return "no error";
}

// Reads until the reading is as wanted: the kernel needs a moment for a signal.
template <typename Condition>
Sample read_until(Observer& observer, Condition condition) {
  Sample sample = observer.Read();
  for (int i = 0; i < 1000 && !condition(sample); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sample = observer.Read();
  }
  return sample;
}

// Nobody's rights for a while, where we are root. The group counts too: /proc lets root's see what it hides.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() != 0 || ::getgid() != 0) return;
    groups_.resize(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
    if (::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0) return;
    changed_ = ::setgroups(0, nullptr) == 0 && ::setegid(kNobody) == 0 && ::seteuid(kNobody) == 0;
    if (!changed_) restore();
  }
  ~AsNobody() {
    if (changed_) restore();
  }
  bool changed() const { return changed_; }

 private:
  static constexpr unsigned kNobody = 65534;
  void restore() {
    if (::seteuid(0) != 0 || ::setegid(0) != 0 || ::setgroups(groups_.size(), groups_.data()) != 0)
      std::abort();
  }

  std::vector<gid_t> groups_;
  bool changed_ = false;
};

TEST(ObserverLiveTest, AnEndIsAGap) {
  Holder holder;
  Observer observer(holder.pid());
  EXPECT_FALSE(observer.Read().gap);
  holder.end();
  const Sample sample = observer.Read(7);
  EXPECT_TRUE(sample.gap);
  EXPECT_THAT(sample.gap_reason, HasSubstr("ended"));
  EXPECT_EQ(sample.iteration, 7);
  EXPECT_EQ(sample.process.sum_bytes, 0);
  EXPECT_TRUE(observer.Ended());
  EXPECT_TRUE(observer.Account().sample.gap);
}

TEST(ObserverLiveTest, AStopIsAGapUntilItGoesOn) {
  Holder holder;
  Observer observer(holder.pid());
  holder.send(SIGSTOP);
  const Sample stopped = read_until(observer, [](const Sample& sample) { return sample.gap; });
  EXPECT_TRUE(stopped.gap);
  EXPECT_THAT(stopped.gap_reason, HasSubstr("stopped"));
  EXPECT_FALSE(observer.Ended());
  holder.send(SIGCONT);
  EXPECT_FALSE(read_until(observer, [](const Sample& sample) { return !sample.gap; }).gap);
}

TEST(ObserverLiveTest, AnExecIsNoticedOnce) {
  Holder holder;
  holder.hold(fmt::format("heap {}", 30 * kMiB));
  Observer observer(holder.pid(), {.cost_limit = 1});
  EXPECT_GT(observer.Read().process.heap_bytes, 30 * kMiB);
  holder.hold("exec 0 /bin/sleep");
  const Sample gap = read_until(observer, [](const Sample& sample) { return sample.gap; });
  EXPECT_THAT(gap.gap_reason, HasSubstr("another program"));
  // The new program's loader may still be at work; its memory is its own.
  const Sample after = observer.Read();
  EXPECT_FALSE(after.gap) << after.gap_reason;
  EXPECT_LT(after.process.sum_bytes, 20 * kMiB);
  EXPECT_FALSE(observer.Ended());
}

TEST(ObserverLiveTest, NamesMayContainAnything) {
  Holder holder;
  holder.hold("newline 0");
  Observer observer(holder.pid());
  const Sample sample = observer.Read();
  EXPECT_FALSE(sample.gap) << sample.gap_reason;
  EXPECT_GT(sample.process.sum_bytes, 0);
}

TEST(ObserverLiveTest, AZombieIsRefused) {
  Holder holder;
  const int zombie = std::stoi(holder.tell("child 0"));
  EXPECT_THAT(error_of(zombie), HasSubstr("zombie"));
  // As a member of a tree it is no process any more.
  Observer observer(holder.pid());
  EXPECT_EQ(observer.Read().process.processes, 1);
}

TEST(ObserverLiveTest, ALeaderMayLeaveItsThreads) {
  Holder holder;
  holder.hold(fmt::format("map {}", 20 * kMiB));
  Observer observer(holder.pid(), {.cost_limit = 1});
  const Sample before = observer.Read();
  EXPECT_EQ(holder.tell("leave 0"), "ok");
  for (int i = 0; i < 20; ++i) {
    const Sample sample = observer.Read();
    ASSERT_FALSE(sample.gap) << sample.gap_reason;
    EXPECT_GE(sample.process.anonymous_bytes, 20 * kMiB) << i;
    EXPECT_EQ(sample.process.descriptors, before.process.descriptors) << i;
    ASSERT_EQ(sample.container.has_value(), before.container.has_value()) << i;
    if (sample.container) {
      EXPECT_EQ(sample.container->path, before.container->path) << i;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// It gives up its memory, its descriptors and its cgroup one after the other.
TEST(ObserverLiveTest, TheLastReadingIsWhole) {
  for (int round = 0; round < 5; ++round) {
    Holder holder;
    holder.hold("maps 4000");
    Observer observer(holder.pid(), {.cost_limit = 1e9});
    const Sample first = observer.Read();
    Sample last = first;
    std::thread killer([&] { holder.send(SIGKILL); });
    for (Sample sample = first; !observer.Ended(); sample = observer.Read())
      if (!sample.gap) last = sample;
    killer.join();
    EXPECT_EQ(last.process.mappings, first.process.mappings);
    EXPECT_EQ(last.process.descriptors, first.process.descriptors);
    if (first.container) {
      EXPECT_EQ(last.container->path, first.container->path);
    }
  }
}

// Kernels before 6.7 make one mapping of a map and the stack that is put beneath it.
TEST(ObserverLiveTest, AMapAboveAStackIsNoStack) {
  Holder holder;
  Observer observer(holder.pid(), {.cost_limit = 1});
  const Sample before = observer.Read();
  for (int i = 0; i < 4; ++i) {
    holder.hold(fmt::format("map {}", 5 * kMiB));
    holder.hold(fmt::format("stack {}", kMiB));
  }
  const Sample after = observer.Read();
  const auto grown = [&](int64_t ProcessView::*kind) {
    return static_cast<double>(after.process.*kind - before.process.*kind);
  };
  EXPECT_NEAR(grown(&ProcessView::anonymous_bytes), 20.0 * kMiB, 1.0 * kMiB);
  EXPECT_NEAR(grown(&ProcessView::stack_bytes), 4.0 * kMiB, 1.0 * kMiB);
}

TEST(ObserverLiveTest, AForkedTreeCountsNoPageTwice) {
  Holder holder;
  holder.hold(fmt::format("map {}", 48 * kMiB));
  Observer observer(holder.pid(), {.cost_limit = 1});
  const Sample before = observer.Read();
  holder.hold("fork 3");
  const Sample forked = observer.Read();
  EXPECT_EQ(forked.process.processes, 4);
  EXPECT_EQ(forked.process.proportional, 1);
  const double whole = 48.0 * kMiB;
  EXPECT_NEAR(static_cast<double>(forked.process.anonymous_bytes),
              static_cast<double>(before.process.anonymous_bytes), 0.05 * whole);
  EXPECT_NEAR(static_cast<double>(forked.process.fork_shared_bytes), whole, 0.05 * whole);
  EXPECT_GE(forked.process.rss_bytes, 4 * 48 * kMiB);  // what top would add up
  // One of them writes half of it: that half exists twice.
  holder.hold(fmt::format("write {}", 24 * kMiB));
  const Sample written = observer.Read();
  EXPECT_NEAR(static_cast<double>(written.process.anonymous_bytes - forked.process.anonymous_bytes),
              24.0 * kMiB, 0.05 * whole);
  EXPECT_LE(written.process.fork_shared_bytes, forked.process.fork_shared_bytes);
}

TEST(ObserverLiveTest, NewChildrenAreFoundAndTheirThreadsAreNone) {
  Observer observer(::getpid());
  EXPECT_EQ(observer.Read().process.processes, 1);
  Holder holder;
  EXPECT_EQ(observer.Read().process.processes, 2);
  holder.hold("threads 20");
  const Sample sample = observer.Read();
  EXPECT_EQ(sample.process.processes, 2);
  EXPECT_GE(sample.process.threads, 22);
  holder.end();
  EXPECT_EQ(observer.Read().process.processes, 1);
}

TEST(ObserverLiveTest, ProcessesThatComeAndGoDuringAReadDoNoHarm) {
  Observer observer(::getpid(), {.cost_limit = 1});
  std::atomic<bool> done = false;
  std::thread churn([&] {
    while (!done) {
      std::string program = "/bin/true";
      std::array<char*, 2> arguments = {program.data(), nullptr};
      pid_t pid = -1;
      if (::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ) == 0)
        ::waitpid(pid, nullptr, 0);
    }
  });
  for (int i = 0; i < 150; ++i) {
    const Sample sample = observer.Read();
    EXPECT_FALSE(sample.gap) << sample.gap_reason;
    EXPECT_GT(sample.process.sum_bytes, 0);
    EXPECT_GE(sample.process.processes, 1);
  }
  done = true;
  churn.join();
}

TEST(ObserverLiveTest, WithoutDescriptorsItIsAGapAndNoEnd) {
  Holder holder;
  Observer observer(holder.pid(), {.cost_limit = 1});
  const Sample before = observer.Read();
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Sample gap = observer.Read();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(gap.gap);
  EXPECT_THAT(gap.gap_reason, HasSubstr("open files"));
  EXPECT_FALSE(observer.Ended());
  const Sample after = observer.Read();
  EXPECT_FALSE(after.gap);
  EXPECT_EQ(after.process.sum_bytes, before.process.sum_bytes);
}

TEST(ObserverLiveTest, HugePagesAreSeen) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(setting, text);
  if (text.empty() || text.find("[never]") != std::string::npos) GTEST_SKIP() << "no transparent huge pages";
  Holder holder;
  Observer observer(holder.pid(), {.cost_limit = 1});
  holder.hold(fmt::format("huge {}", 32 * kMiB));
  const Sample sample = observer.Read();
  EXPECT_GE(sample.process.sum_bytes, 32 * kMiB);
  if (sample.process.huge_page_bytes == 0) GTEST_SKIP() << "the kernel had no huge page to give";
  EXPECT_NEAR(static_cast<double>(sample.process.huge_page_bytes), 32.0 * kMiB, 8.0 * kMiB);
}

TEST(ObserverLiveTest, FiftyThousandMappings) {
  Holder holder;
  if (holder.tell("maps 25000") != "ok") GTEST_SKIP() << "vm.max_map_count is too low";
  Observer observer(holder.pid());
  const Sample sample = observer.Read();
  EXPECT_GE(sample.process.mappings, 50'000);
  EXPECT_NEAR(static_cast<double>(sample.process.sum_bytes), static_cast<double>(sample.process.kernel_bytes),
              static_cast<double>(kMiB));
}

TEST(ObserverLiveTest, TenThousandThreads) {
  Holder holder;
  if (holder.tell("threads 10000") != "ok") GTEST_SKIP() << "no room for so many threads";
  Observer observer(holder.pid());
  const Sample sample = observer.Read();
  EXPECT_EQ(sample.process.threads, 10'001);
  EXPECT_GE(sample.process.stack_bytes, 10'000 * 4096);  // each touches a page at least
  EXPECT_LT(sample.process.anonymous_bytes, 4 * kMiB);
}

TEST(ObserverLiveTest, DescriptorsAreCounted) {
  Holder holder;
  Observer observer(holder.pid());
  const int64_t before = observer.Read().process.descriptors;
  holder.hold("descriptors 200");
  EXPECT_EQ(observer.Read().process.descriptors, before + 200);
}

TEST(ObserverLiveTest, ADeletedFileIsStillAFile) {
  const std::string path = fmt::format("/var/tmp/plimsoll_deleted_{}", ::getpid());
  Holder holder;
  const std::string answer = holder.tell(fmt::format("shared_file {} {}", 8 * kMiB, path));
  if (answer != "ok") GTEST_SKIP() << answer;
  holder.hold("delete 0 " + path);
  const MemoryAccount account = Observer(holder.pid()).Account();
  EXPECT_GE(account.sample.process.shared_file_bytes, 8 * kMiB);
  const auto has = [&](const std::vector<MemoryPart>& parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const MemoryPart& part) {
      return part.name == path + " (deleted)" && part.bytes == 8 * kMiB;
    });
  };
  EXPECT_TRUE(has(account.libraries));
}

TEST(ObserverLiveTest, OpenFilesInThePageCacheAreNamed) {
  const std::string path = fmt::format("/var/tmp/plimsoll_cache_{}", ::getpid());
  Holder holder;
  const std::string answer = holder.tell(fmt::format("cache {} {}", 12 * kMiB, path));
  const MemoryAccount account = Observer(holder.pid()).Account();
  std::filesystem::remove(path);
  if (answer != "ok") GTEST_SKIP() << answer;
  const auto found = std::find_if(account.cached_files.begin(), account.cached_files.end(),
                                  [&](const MemoryPart& part) { return part.name == path; });
  ASSERT_NE(found, account.cached_files.end());
  EXPECT_EQ(found->bytes, 12 * kMiB);
  EXPECT_THAT(account.notes, ::testing::Contains(HasSubstr("the kernel does not tell")));
}

TEST(ObserverLiveTest, KernelThreadsHaveNoMemory) {
  if (!std::filesystem::exists("/proc/2/stat")) GTEST_SKIP() << "no kernel threads can be seen here";
  std::string name;
  std::getline(std::ifstream("/proc/2/comm"), name);
  if (name != "kthreadd") GTEST_SKIP() << "process 2 is no kernel thread here";
  EXPECT_THAT(error_of(2), HasSubstr("a thread of the kernel"));
}

TEST(ObserverLiveTest, AThreadIsNoProcess) {
  int id = 0;
  std::atomic<bool> ready = false, done = false;
  std::thread thread([&] {
    id = ::gettid();
    ready = true;
    ready.notify_one();
    done.wait(false);
  });
  ready.wait(false);
  EXPECT_THAT(error_of(id), HasSubstr(fmt::format("a thread of process {}", ::getpid())));
  done = true;
  done.notify_one();
  thread.join();
}

TEST(ObserverLiveTest, AnotherUsersProcessIsToldApartCoarsely) {
  Holder holder;
  holder.hold(fmt::format("heap {}", 16 * kMiB));
  MemoryAccount account;
  {
    const AsNobody nobody;
    if (!nobody.changed()) GTEST_SKIP() << "needs root, to become somebody else";
    account = Observer(holder.pid()).Account();
  }
  ASSERT_FALSE(account.sample.gap) << account.sample.gap_reason;
  EXPECT_FALSE(account.sample.exact);
  EXPECT_GE(account.sample.process.anonymous_bytes, 16 * kMiB);
  EXPECT_EQ(account.sample.process.heap_bytes, 0);
  EXPECT_THAT(account.notes, ::testing::Contains(HasSubstr("may not be read")));
}

TEST(ObserverLiveTest, HiddenProcessesAreAClearError) {
  const std::string mount = fmt::format("/tmp/plimsoll_proc_{}", ::getpid());
  std::filesystem::create_directory(mount);
  for (const char* option : {"hidepid=1", "hidepid=2"}) {
    if (::mount("proc", mount.c_str(), "proc", 0, option) != 0) {
      std::filesystem::remove(mount);
      GTEST_SKIP() << "needs the right to mount /proc";
    }
    std::string message;
    {
      Holder holder;
      const AsNobody nobody;
      if (!nobody.changed())
        message = "hidepid needs root";
      else
        message = error_of(holder.pid(), {.proc_root = mount});
    }
    ::umount2(mount.c_str(), MNT_DETACH);
    EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("hidepid"), HasSubstr("may not be read"))) << option;
  }
  std::filesystem::remove(mount);
}

}  // namespace
}  // namespace plimsoll
