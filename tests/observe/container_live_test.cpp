// What a process takes in a cgroup of its own must be found in the container's view, in its kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "holder.h"
#include "observe/cgroup.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using observed::Holder;

constexpr int64_t kMiB = int64_t{1} << 20;

// A memory cgroup beneath our own, or beside it: version 2 passes no controller on to the children of a
// cgroup that has processes. Removed with the object, after whoever was in it has ended.
class OwnCgroup {
 public:
  OwnCgroup() {
    const auto place = find_controller(cgroup_places(0), "memory");
    if (!place) return;
    const std::filesystem::path ours = place->directory;
    if (!make(ours) && place->directory != place->mount_point) make(ours.parent_path());
  }
  ~OwnCgroup() {
    std::error_code error;
    for (int i = 0; i < 400 && !directory_.empty() && !std::filesystem::remove(directory_, error); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  bool add(int pid) const {
    std::ofstream file(directory_ + "/cgroup.procs");
    file << pid << std::flush;
    return !directory_.empty() && file.good();
  }

 private:
  bool make(const std::filesystem::path& parent) {
    const std::string directory = parent / fmt::format("plimsoll_test_{}", ::getpid());
    std::error_code error;
    if (std::filesystem::create_directory(directory, error) &&
        std::filesystem::exists(directory + "/memory.stat"))
      directory_ = directory;
    else
      std::filesystem::remove(directory, error);
    return !directory_.empty();
  }

  std::string directory_;
};

class ContainerLiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cgroup_.add(holder_.pid())) GTEST_SKIP() << "no memory cgroup may be made beneath or beside ours";
    observer_ = std::make_unique<Observer>(holder_.pid(), ObserverOptions{.cost_limit = 1});
  }
  ContainerView read() {
    const Sample sample = observer_->Read();
    EXPECT_FALSE(sample.gap) << sample.gap_reason;
    const ContainerView view = sample.container.value_or(ContainerView{});
    EXPECT_LE(std::abs(view.kernel_bytes - view.sum_bytes), std::max(kMiB, view.kernel_bytes / 50));
    return view;
  }
  void expect_growth(const std::string& command, int64_t bytes, int64_t ContainerView::*member) {
    const ContainerView before = read();
    const std::string answer = holder_.tell(command);
    if (answer != "ok") GTEST_SKIP() << answer;
    const ContainerView after = read();
    EXPECT_NEAR(static_cast<double>(after.*member - before.*member), static_cast<double>(bytes),
                0.05 * static_cast<double>(bytes));
  }

  OwnCgroup cgroup_;
  Holder holder_;
  std::unique_ptr<Observer> observer_;
};

TEST_F(ContainerLiveTest, Anonymous) {
  expect_growth(fmt::format("map {}", 32 * kMiB), 32 * kMiB, &ContainerView::anonymous_bytes);
}

TEST_F(ContainerLiveTest, PageCache) {
  const std::string path = fmt::format("/var/tmp/plimsoll_container_{}", ::getpid());
  expect_growth(fmt::format("cache {} {}", 32 * kMiB, path), 32 * kMiB, &ContainerView::page_cache_bytes);
  std::filesystem::remove(path);
}

TEST_F(ContainerLiveTest, SharedMemory) {
  expect_growth(fmt::format("memfd {}", 32 * kMiB), 32 * kMiB, &ContainerView::shared_memory_bytes);
}

TEST_F(ContainerLiveTest, KernelStacks) {
  expect_growth("threads 400", 400 * (16 << 10), &ContainerView::kernel_stack_bytes);
}

TEST_F(ContainerLiveTest, PageTables) {
  // Every touched page lies in a table of its own, which is a page too.
  expect_growth("sparse 1000", 1000 * 4096, &ContainerView::page_table_bytes);
}

}  // namespace
}  // namespace plimsoll
