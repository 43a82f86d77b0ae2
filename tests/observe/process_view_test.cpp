#include "observe/process_view.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

FullReading reading(int64_t heap, int64_t stack, int64_t file) {
  FullReading full;
  for (ProcessView* view : {&full.by_rss, &full.by_pss}) {
    view->heap_bytes = heap;
    view->stack_bytes = stack;
    view->shared_file_bytes = file;
  }
  full.status.rss_anonymous_bytes = heap + stack;
  full.status.rss_file_bytes = file;
  full.status.rss_shared_memory_bytes = 0;
  full.status.rss_bytes = heap + stack + file;
  return full;
}

ProcessStatus status(int64_t anonymous, int64_t file, int64_t shared = 0) {
  ProcessStatus now;
  now.rss_anonymous_bytes = anonymous;
  now.rss_file_bytes = file;
  now.rss_shared_memory_bytes = shared;
  now.rss_bytes = anonymous + file + shared;
  return now;
}

TEST(ScaleView, AChangeGoesWhereTheTrendIs) {
  const FullReading before = reading(1000, 1000, 500), last = reading(1600, 1000, 500);
  const ProcessView view = scale_view(&last, &before, status(3000, 500), false);
  EXPECT_EQ(view.heap_bytes, 2000);
  EXPECT_EQ(view.stack_bytes, 1000);
  EXPECT_EQ(view.sum_bytes, view.kernel_bytes);
}

TEST(ScaleView, ACounterThatOnlyCatchesUpIsNoGrowth) {
  // Linux 6.1 right after a program's start: of 3040 kB that a walk finds its counters know 1548.
  FullReading last = reading(80, 56, 2904);
  last.status = status(144, 1404);
  EXPECT_EQ(scale_view(&last, &last, status(144, 2904), false).shared_file_bytes, 2904);
  EXPECT_EQ(scale_view(&last, &last, status(144, 3004), false).shared_file_bytes, 3004);
  EXPECT_EQ(scale_view(&last, &last, status(144, 1304), false).shared_file_bytes, 2804);
  last.by_pss.shared_file_bytes = 1452;
  EXPECT_EQ(scale_view(&last, &last, status(144, 2904), true).shared_file_bytes, 1452);
  EXPECT_EQ(scale_view(&last, &last, status(144, 5808), true).shared_file_bytes, 2904);
  last.status = status(100, 2904);
  EXPECT_EQ(scale_view(&last, &last, status(136, 2904), false).heap_bytes, 80);
}

TEST(ScaleView, ATrendThatExplainsTooLittleIsNone) {
  const FullReading before = reading(3000, 1000, 500), last = reading(3000, 1001, 500);
  const ProcessView view = scale_view(&last, &before, status(8001, 500), false);
  EXPECT_EQ(view.heap_bytes, 7000);  // stacks and written copies do not grow by themselves
  EXPECT_EQ(view.stack_bytes, 1001);
  const ProcessView less = scale_view(&last, &before, status(2001, 500), false);
  EXPECT_NEAR(static_cast<double>(less.heap_bytes), 1500, 5);
  EXPECT_NEAR(static_cast<double>(less.stack_bytes), 500, 5);
}

TEST(ScaleView, WhatShrinksNeverBecomesNegative) {
  const FullReading before = reading(1000, 5000, 500), last = reading(500, 5000, 500);
  const ProcessView view = scale_view(&last, &before, status(1000, 100), false);
  EXPECT_EQ(view.heap_bytes, 0);
  EXPECT_GE(view.stack_bytes, 0);
  EXPECT_EQ(view.shared_file_bytes, 100);
}

TEST(ScaleView, WithoutAFullReadingTheKernelsThreeKinds) {
  const ProcessView view = scale_view(nullptr, nullptr, status(3000, 500, 70), true);
  EXPECT_EQ(view.anonymous_bytes, 3000);
  EXPECT_EQ(view.shared_file_bytes, 500);
  EXPECT_EQ(view.shared_memory_bytes, 70);
  EXPECT_EQ(view.sum_bytes, 3570);
}

}  // namespace
}  // namespace plimsoll
