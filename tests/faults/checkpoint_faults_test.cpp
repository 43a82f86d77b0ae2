// A checkpoint is killed, or its disk is full, at every call in turn: the last complete one opens.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "plimsoll/error.h"
#include "plimsoll/training.h"

namespace {

enum class Fault { kNone, kKill, kKillHalfway, kFullDisk };
struct DiskFaults {
  Fault fault = Fault::kNone;
  long calls = 0, at = 0;
};
thread_local DiskFaults faults;

// Whether this call is the one.
bool strikes() {
  return faults.fault != Fault::kNone && ++faults.calls == faults.at;
}
long struck_call(long number, bool halfway, long a, long b = 0, long c = 0, long d = 0) {
  if (!strikes()) return syscall(number, a, b, c, d);
  if (faults.fault == Fault::kFullDisk) {
    errno = ENOSPC;
    return -1;
  }
  if (faults.fault == Fault::kKillHalfway && halfway) syscall(number, a, b, c / 2);
  _exit(137);
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t count) {
  return struck_call(SYS_write, true, fd, reinterpret_cast<long>(data), static_cast<long>(count));
}
extern "C" int fsync(int fd) {
  return static_cast<int>(struck_call(SYS_fsync, false, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(struck_call(SYS_renameat, false, AT_FDCWD, reinterpret_cast<long>(from), AT_FDCWD,
                                      reinterpret_cast<long>(to)));
}

namespace plimsoll {
namespace {

constexpr int64_t kElements = 20000;

CheckpointState state_of(float number) {
  CheckpointState state;
  for (const char* name : {"a", "b", "c"}) {
    Value value = Value::CreateTensor(ElementType::kFloat, {kElements});
    std::fill_n(value.GetTensorMutableData<float>(), kElements, number);
    state.UpdateParameter(name, value);
  }
  state.AddProperty("number", number);
  return state;
}

// Throws unless it is complete and of one piece.
float number_in(const std::string& path) {
  const CheckpointState state = CheckpointState::LoadCheckpoint(path);
  const float number = std::get<float>(state.GetProperty("number"));
  for (const char* name : {"a", "b", "c"}) {
    const Value value = state.GetParameter(name);
    for (int64_t i = 0; i < kElements; ++i) EXPECT_EQ(value.GetTensorData<float>()[i], number);
  }
  return number;
}

class CheckpointFaults : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("plimsoll-checkpoint-faults-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ / "checkpoint";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void save_full(float number, long at) {
    const CheckpointState state = state_of(number);
    faults = {Fault::kFullDisk, 0, at};
    CheckpointState::SaveCheckpoint(state, path_, true);
    faults.fault = Fault::kNone;
  }

  std::filesystem::path folder_;
  std::string path_;
};

// Runs in a process of its own, which the fault ends.
TEST(CheckpointWriter, DISABLED_Writes) {
  const CheckpointState state = state_of(2);
  faults = {std::getenv("PLIMSOLL_HALFWAY") != nullptr ? Fault::kKillHalfway : Fault::kKill, 0,
            std::atol(std::getenv("PLIMSOLL_AT"))};
  CheckpointState::SaveCheckpoint(state, std::getenv("PLIMSOLL_CHECKPOINT"), true);
  _exit(0);
}

// The exit code of a process that writes and is killed at its `at`-th call; 0: it made fewer.
int write_killed(const std::string& path, bool halfway, long at) {
  const std::string environment[] = {"PLIMSOLL_CHECKPOINT=" + path, "PLIMSOLL_AT=" + std::to_string(at),
                                     halfway ? "PLIMSOLL_HALFWAY=1" : "PLIMSOLL_WHOLE=1"};
  std::vector<char*> variables;
  for (char** e = environ; *e != nullptr; ++e) variables.push_back(*e);
  for (const std::string& e : environment) variables.push_back(const_cast<char*>(e.c_str()));
  variables.push_back(nullptr);
  const char* arguments[] = {"/proc/self/exe", "--gtest_filter=CheckpointWriter.*",
                             "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, arguments[0], nullptr, nullptr, const_cast<char**>(arguments),
                    variables.data()) != 0)
    return -1;
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CheckpointFaults, KilledAtEveryCallTheLastCompleteOneOpens) {
  int old_ones = 0, kills = 0;
  for (const bool halfway : {false, true}) {
    for (long at = 1; at < 100; ++at) {
      CheckpointState::SaveCheckpoint(state_of(1), path_, true);
      const int code = write_killed(path_, halfway, at);
      ASSERT_TRUE(code == 0 || code == 137) << code;
      const float found = number_in(path_);
      ASSERT_TRUE(found == 1 || found == 2);
      if (code == 0) break;
      ++kills;
      old_ones += found == 1;
    }
  }
  std::printf("killed %d times, the old one was there %d times, the new one %d times\n", kills, old_ones,
              kills - old_ones);
  EXPECT_GT(old_ones, 12);
  EXPECT_LT(old_ones, kills);  // after the rename it is the new one
}

TEST_F(CheckpointFaults, AFullDiskIsAnErrorAndTheOldOneStays) {
  CheckpointState::SaveCheckpoint(state_of(1), path_, true);
  long refused = 0;
  for (long at = 1; at < 100; ++at) {
    bool failed = false;
    try {
      save_full(2, at);
    } catch (const Error& error) {
      faults.fault = Fault::kNone;
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      failed = true;
    }
    const bool reached = faults.calls >= at;
    if (failed) {
      ++refused;
      EXPECT_EQ(number_in(path_), 1);
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
          << "something is left behind";
    } else if (!reached) {
      EXPECT_EQ(number_in(path_), 2);
      break;
    } else {
      CheckpointState::SaveCheckpoint(state_of(1), path_, true);  // the folder's sync may fail
    }
  }
  EXPECT_GT(refused, 5);
}

TEST_F(CheckpointFaults, CutAtAnyByteOrChangedAtAnyItIsRefused) {
  CheckpointState::SaveCheckpoint(state_of(3), path_, true);
  std::string bytes;
  {
    std::FILE* file = std::fopen(path_.c_str(), "rb");
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) bytes.append(buffer, n);
    std::fclose(file);
  }
  const auto refused = [](const std::string& text) {
    try {
      CheckpointState::LoadCheckpointFromBuffer(std::as_bytes(std::span<const char>(text)));
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidModel;
    }
    return false;
  };
  for (size_t cut = 0; cut < bytes.size(); cut += cut < 400 ? 1 : 997)
    EXPECT_TRUE(refused(bytes.substr(0, cut))) << cut;
  size_t unseen = 0, tried = 0;
  for (size_t at = 0; at < bytes.size(); at += at < 400 ? 1 : 991, ++tried) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    unseen += !refused(changed);
  }
  EXPECT_LE(unseen, 70u) << "padding and reserved bytes alone";  // 4 reserved, up to 63 before each tensor
  EXPECT_GT(tried, 500u);
}

}  // namespace
}  // namespace plimsoll
