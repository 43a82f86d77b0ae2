// What a runtime that was asked writes, and what somebody else might write in its place.
#include "observe/told_heap.h"

#include <gtest/gtest.h>
#include <plimsoll/observe.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll {
namespace {

const std::string kWhole = "plimsoll-heap 1 7 4711 3 5000000 9000000 2 15300 1 7      \n";

TEST(ToldHeap, IsWhatWasWritten) {
  const auto told = parse_told_heap(kWhole);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->start_ticks, 4711u);
  EXPECT_EQ(told->collections, 3);
  EXPECT_EQ(told->live_bytes, 5'000'000);
  EXPECT_EQ(told->heap_bytes, 9'000'000);
  EXPECT_EQ(told->asked_collections, 2);
  EXPECT_EQ(told->asked_microseconds, 15'300);
  EXPECT_EQ(told->untold_heaps, 1);
}

TEST(ToldHeap, WhatIsTornOrStrangeTellsNothing) {
  for (size_t length = 0; length < kWhole.size(); ++length)
    EXPECT_FALSE(parse_told_heap(kWhole.substr(0, length)).has_value()) << length;
  for (const char* strange : {"plimsoll-heap 1 8 4711 3 5000000 9000000 2 15300 1 7\n",  // two turns
                              "plimsoll-heap 2 7 4711 3 5000000 9000000 2 15300 1 7\n",  // another form
                              "plimsoll-heap 1 7 4711 3 -5 9000000 2 15300 1 7\n",       //
                              "plimsoll-heap 1 7 4711 3 99999999999999999999 9 2 15300 1 7\n",    //
                              "plimsoll-heap 1 7 4711 3 5000000 9000000 2 15300 1 7 and more\n",  //
                              "plimsoll-heap 1 7 4711 x 5000000 9000000 2 15300 1 7\n"})
    EXPECT_FALSE(parse_told_heap(strange).has_value()) << strange;
}

class ToldDirectory : public testing::Test {
 protected:
  ToldDirectory() : directory_(testing::TempDir() + "told_" + std::to_string(::getpid())) {
    std::filesystem::create_directory(directory_);
  }
  ~ToldDirectory() override { std::filesystem::remove_all(directory_); }

  // This process, as if it had started at `start_ticks` and told so.
  TreeMember read(const std::string& start_ticks) {
    std::ofstream(directory_ + "/" + std::to_string(::getpid()))
        << "plimsoll-heap 1 7 " << start_ticks << " 3 5000000 9000000 2 15300 1 7\n";
    ObserverOptions options;
    options.tree = false;
    options.told_directory = directory_;
    const Sample sample = Observer(::getpid(), options).Read();
    EXPECT_EQ(sample.members.size(), 1u);
    return sample.members.front();
  }

  static std::string own_start_ticks() {
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    text = text.substr(text.rfind(')') + 2);
    for (int field = 3; field < 22; ++field) text = text.substr(text.find(' ') + 1);
    return text.substr(0, text.find(' '));
  }

 private:
  std::string directory_;
};

TEST_F(ToldDirectory, IsReadWithTheProcess) {
  const TreeMember member = read(own_start_ticks());
  EXPECT_EQ(member.live_bytes, 5'000'000);
  EXPECT_EQ(member.heap_bytes, 9'000'000);
  EXPECT_EQ(member.collections, 3);
  EXPECT_DOUBLE_EQ(member.asked_seconds, 0.0153);
}

TEST_F(ToldDirectory, OfAnotherProcessThatHadItsNumberIsNotBelieved) {
  EXPECT_EQ(read("1").live_bytes, -1);
}

TEST_F(ToldDirectory, SurvivesARecording) {
  Sample sample;
  sample.members.push_back(read(own_start_ticks()));
  const Sample again = SampleFromJson(ToJson(sample));
  ASSERT_EQ(again.members.size(), 1u);
  EXPECT_EQ(again.members[0].live_bytes, 5'000'000);
  EXPECT_EQ(again.members[0].collections, 3);
  EXPECT_EQ(again.members[0].heap_bytes, 9'000'000);
  EXPECT_EQ(again.members[0].untold_heaps, 1);
  EXPECT_EQ(again.members[0].asked_collections, 2);
  EXPECT_DOUBLE_EQ(again.members[0].asked_seconds, 0.0153);
}

}  // namespace
}  // namespace plimsoll
