// The counters of a JVM: as it writes them, and as somebody else might.
#include "observe/jvm_counters.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace plimsoll {
namespace {

void put(std::string& bytes, size_t offset, int32_t number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

struct Counter {
  std::string name;
  int64_t value;
};

std::string file_of(const std::vector<Counter>& counters) {
  std::string bytes(32, '\0');
  bytes.replace(0, 6, "\xca\xfe\xc0\xc0\x01\x02");
  put(bytes, 24, 32);
  put(bytes, 28, static_cast<int32_t>(counters.size()));
  for (const Counter& counter : counters) {
    const size_t name_room = (counter.name.size() + 8) / 8 * 8 + 4;
    std::string entry(20 + name_room + 8, '\0');
    put(entry, 0, static_cast<int32_t>(entry.size()));
    put(entry, 4, 20);
    entry[12] = 'J';
    put(entry, 16, static_cast<int32_t>(20 + name_room));
    std::memcpy(entry.data() + 20, counter.name.data(), counter.name.size());
    std::memcpy(entry.data() + 20 + name_room, &counter.value, sizeof counter.value);
    bytes += entry;
  }
  return bytes;
}

const std::vector<Counter> kCounters = {
    {"sun.gc.collector.0.invocations", 8},       {"sun.gc.collector.1.invocations", 1},
    {"sun.gc.generation.0.space.0.used", 9'000}, {"sun.gc.generation.0.space.1.used", 0},
    {"sun.gc.generation.0.space.2.used", 300},   {"sun.gc.generation.1.space.0.used", 5'000}};

TEST(JvmCounters, TheOldGenerationAndSurvivorsAreWhatLives) {
  const auto counters = parse_jvm_counters(file_of(kCounters));
  ASSERT_TRUE(counters.has_value());
  EXPECT_EQ(counters->live_bytes, 5'300);
  EXPECT_EQ(counters->collections, 9);
}

std::vector<Counter> spaces(int64_t eden, int64_t old, int64_t old_capacity, int64_t survivors) {
  std::vector<Counter> counters = {{"sun.gc.generation.0.capacity", 8'000},
                                   {"sun.gc.generation.0.space.1.maxCapacity", survivors},
                                   {"sun.gc.generation.1.capacity", old_capacity},
                                   {"sun.gc.generation.0.space.0.used", eden},
                                   {"sun.gc.generation.1.space.0.used", old}};
  return counters;
}

TEST(JvmCounters, WhatWasInUseStaysTouchedUntilItIsUncommitted) {
  TouchedHeap heap;
  const auto touched = [&](int64_t eden, int64_t old, int64_t old_capacity) {
    return heap.update(*parse_jvm_counters(file_of(spaces(eden, old, old_capacity, 1 << 20))));
  };
  EXPECT_EQ(touched(6'000, 0, 20'000), 6'000);
  EXPECT_EQ(touched(1'000, 3'000, 20'000), 9'000);
  EXPECT_EQ(touched(2'000, 15'000, 20'000), 21'000);
  EXPECT_EQ(touched(2'000, 1'000, 20'000), 21'000);  // collected, and the pages stay
  EXPECT_EQ(touched(2'000, 1'000, 5'000), 11'000);
  EXPECT_EQ(touched(2'000, 1'000, 20'000), 11'000);
}

// What was young stays where it was, and the next young regions are those that came.
TEST(JvmCounters, RegionsThatAreCommittedLaterAreTouchedNext) {
  TouchedHeap heap;
  const auto touched = [&](int64_t eden, int64_t capacity) {
    return heap.update(*parse_jvm_counters(file_of(spaces(eden, 0, capacity, 8))));
  };
  EXPECT_EQ(touched(6'000, 4'000), 6'000);
  EXPECT_EQ(touched(1'000, 9'000), 11'000);
}

TEST(JvmCounters, WithoutGenerationsNothingIsTold) {
  EXPECT_FALSE(parse_jvm_counters(file_of({{"sun.gc.generation.0.space.0.used", 7}})).has_value());
  EXPECT_FALSE(parse_jvm_counters("").has_value());
  EXPECT_FALSE(parse_jvm_counters(std::string(4096, '\xff')).has_value());
}

TEST(JvmCounters, TornAndStrangeFilesAreReadToTheirEndAtMost) {
  const std::string whole = file_of(kCounters);
  for (size_t length = 0; length < whole.size(); ++length) parse_jvm_counters(whole.substr(0, length));
  for (size_t place = 6; place + 4 <= whole.size(); ++place) {
    for (const int32_t number : {-1, 0, 1 << 30, 0x7fffffff}) {
      std::string strange = whole;
      put(strange, place, number);
      const auto counters = parse_jvm_counters(strange);
      EXPECT_GE(counters.value_or(JvmCounters{}).collections, 0);
    }
  }
}

}  // namespace
}  // namespace plimsoll
