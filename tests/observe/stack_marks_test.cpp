#include <gtest/gtest.h>

#include "observe/classify.h"

namespace plimsoll {
namespace {

Vma writable(uint64_t start, uint64_t bytes) {
  Vma vma;
  vma.start = start;
  vma.end = start + bytes;
  vma.readable = vma.writable = true;
  return vma;
}

TEST(StackMarks, KernelsSince6Point7ShowThem) {
  for (const char* release : {"6.7.0", "6.18.44-fc", "7.0\n"}) EXPECT_TRUE(marks_stacks(release)) << release;
  for (const char* release : {"6.6.9", "5.19.1", "4.18.0-553", "", "6", "x.y", "6."})
    EXPECT_FALSE(marks_stacks(release)) << release;
}

TEST(StackMarks, AGuardedMapWithoutTheMarkIsNoStackWhereStacksAreMarked) {
  std::vector<Vma> vmas = {writable(0x100000, 0x1000), writable(0x101000, 0x20000)};
  vmas[0].readable = vmas[0].writable = false;  // the guard
  const NameTable names;
  MappingContext context;
  EXPECT_EQ(classify(vmas, names, context)[1], MappingKind::kThreadStack);
  context.stacks_are_marked = true;
  EXPECT_NE(classify(vmas, names, context)[1], MappingKind::kThreadStack);
  vmas[1].no_huge_page = true;
  EXPECT_EQ(classify(vmas, names, context)[1], MappingKind::kThreadStack);
}

}  // namespace
}  // namespace plimsoll
