// A checkpoint is killed, or its disk is full, at every call in turn: the last complete one opens.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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
long struck_call(long number, long a, long b, long c, bool halfway) {
  if (!strikes()) return syscall(number, a, b, c);
  if (faults.fault == Fault::kFullDisk) {
    errno = ENOSPC;
    return -1;
  }
  if (faults.fault == Fault::kKillHalfway && halfway) syscall(number, a, b, c / 2);
  _exit(137);
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t count) {
  return struck_call(SYS_write, fd, reinterpret_cast<long>(data), static_cast<long>(count), true);
}
extern "C" int fsync(int fd) {
  return static_cast<int>(struck_call(SYS_fsync, fd, 0, 0, false));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(
      struck_call(SYS_rename, reinterpret_cast<long>(from), reinterpret_cast<long>(to), 0, false));
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
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    folder_ = std::filesystem::temp_directory_path() / "plimsoll-checkpoint-faults";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ / "checkpoint";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void save_struck(float number, Fault fault, long at) {
    const CheckpointState state = state_of(number);
    faults = {fault, 0, at};
    CheckpointState::SaveCheckpoint(state, path_, true);
    faults.fault = Fault::kNone;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(CheckpointFaults, KilledAtEveryCallTheLastCompleteOneOpens) {
  CheckpointState::SaveCheckpoint(state_of(1), path_, true);
  int old_ones = 0, kills = 0;
  for (const Fault fault : {Fault::kKill, Fault::kKillHalfway}) {
    for (long at = 1; at < 100; ++at) {
      const auto killed = [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 137; };
      bool done = false;
      // In the child: what is struck never returns.
      EXPECT_EXIT(
          {
            save_struck(2, fault, at);
            _exit(faults.calls >= at ? 137 : 0);
          },
          [&](int status) {
            done = !killed(status);
            return true;
          },
          "");
      const float found = number_in(path_);
      ASSERT_TRUE(found == 1 || found == 2);
      old_ones += found == 1;
      kills += !done;
      if (done) break;
      std::filesystem::remove(path_);
      CheckpointState::SaveCheckpoint(state_of(1), path_, true);
    }
  }
  std::printf("killed %d times, the old one was there %d times\n", kills, old_ones);
  EXPECT_GT(kills, 10);
  EXPECT_GT(old_ones, 8);
  EXPECT_LT(old_ones, kills);  // after the rename it is the new one
}

TEST_F(CheckpointFaults, AFullDiskIsAnErrorAndTheOldOneStays) {
  CheckpointState::SaveCheckpoint(state_of(1), path_, true);
  long refused = 0;
  for (long at = 1; at < 100; ++at) {
    bool failed = false;
    try {
      save_struck(2, Fault::kFullDisk, at);
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
