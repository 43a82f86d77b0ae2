#include "observe/classify.h"

#include <gtest/gtest.h>

#include "recorded_process.h"

namespace plimsoll {
namespace {

using observed::RecordedMapping;
using observed::smaps_of;

std::vector<MappingKind> kinds_of(const std::vector<RecordedMapping>& mappings,
                                  const MappingContext& context = {}) {
  std::vector<Vma> vmas;
  NameTable names;
  SmapsParser parser(vmas, names);
  parser.feed(smaps_of(mappings));
  parser.finish();
  EXPECT_EQ(vmas.size(), mappings.size());
  return classify(vmas, names, context);
}

MappingKind kind_of(const std::string& header) {
  return kinds_of({{header}})[0];
}

TEST(Classify, ByName) {
  EXPECT_EQ(kind_of("55d000-55e000 rw-p 00000000 00:00 0 [heap]"), MappingKind::kHeap);
  EXPECT_EQ(kind_of("7ffc00-7ffd00 rw-p 00000000 00:00 0 [stack]"), MappingKind::kMainStack);
  EXPECT_EQ(kind_of("7ffc00-7ffd00 r-xp 00000000 00:00 0 [vdso]"), MappingKind::kFile);
  EXPECT_EQ(kind_of("1000-2000 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6"), MappingKind::kFile);
  EXPECT_EQ(kind_of("1000-2000 rw-s 00000000 00:01 12 /memfd:pool (deleted)"), MappingKind::kSharedMemory);
  EXPECT_EQ(kind_of("1000-2000 rw-s 00000000 00:01 12 /dev/zero (deleted)"), MappingKind::kSharedMemory);
  EXPECT_EQ(kind_of("1000-2000 rw-s 00000000 00:01 12 /SYSV00000000 (deleted)"), MappingKind::kSharedMemory);
  EXPECT_EQ(kind_of("1000-2000 rw-s 00000000 00:15 12 /dev/shm/torch_1"), MappingKind::kSharedMemory);
  EXPECT_EQ(kind_of("1000-2000 rw-p 00000000 00:00 0 [anon: glibc: malloc arena]"), MappingKind::kArena);
  EXPECT_EQ(kind_of("1000-2000 rw-p 00000000 00:00 0 [anon: glibc: pthread stack: 12]"),
            MappingKind::kThreadStack);
  EXPECT_EQ(kind_of("1000-2000 rw-p 00000000 00:00 0 [anon:dalvik-main space]"), MappingKind::kAnonymous);
}

TEST(Classify, FilesOnAnyTmpfsAreSharedMemory) {
  const MappingContext context{
      find_tmpfs_devices("25 1 0:22 / /run/my\\040dir rw - tmpfs tmpfs rw\n"
                         "26 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\nbroken line\n"),
      false};
  EXPECT_EQ(context.tmpfs_devices.size(), 1u);
  const auto kinds = kinds_of({{"1000-2000 rw-s 00000000 00:16 5 /run/my dir/x"},  // 0x16 is 22
                               {"3000-4000 rw-s 00000000 fe:00 5 /run/y"}},
                              context);
  EXPECT_EQ(kinds[0], MappingKind::kSharedMemory);
  EXPECT_EQ(kinds[1], MappingKind::kFile);
}

TEST(Classify, ArenasOfGlibc) {
  const auto kinds = kinds_of({
      {"7f0000000000-7f0000200000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr nr"},
      {"7f0000200000-7f0004000000 ---p 00000000 00:00 0", 0, 0, -1, "nr"},
      // A full one, without a reserve.
      {"7f0008000000-7f000c000000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr nr"},
      // The same size where no arena could be.
      {"7f0011000000-7f0015000000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr"},
      // A reserve that ends too early.
      {"7f0020000000-7f0020100000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr"},
      {"7f0020100000-7f0020200000 ---p 00000000 00:00 0", 0, 0, -1, ""},
  });
  EXPECT_EQ(kinds[0], MappingKind::kArena);
  EXPECT_EQ(kinds[1], MappingKind::kArena);
  EXPECT_EQ(kinds[2], MappingKind::kArena);
  EXPECT_EQ(kinds[3], MappingKind::kAnonymous);
  EXPECT_EQ(kinds[4], MappingKind::kAnonymous);
}

TEST(Classify, StacksStandBehindAGuard) {
  const auto kinds = kinds_of({
      {"7f0001000000-7f0001001000 ---p 00000000 00:00 0", 0, 0, -1, ""},
      {"7f0001001000-7f0001801000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr"},
      // Behind an arena's reserve, which older kernels merge the guard with.
      {"7f0004000000-7f0004100000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr nr"},
      {"7f0004100000-7f0008001000 ---p 00000000 00:00 0", 0, 0, -1, "nr"},
      {"7f0008001000-7f0008801000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr"},
      // Too large a reserve before it for a guard.
      {"7f0010000000-7f0010a00000 ---p 00000000 00:00 0", 0, 0, -1, ""},
      {"7f0010a00000-7f0010b00000 rw-p 00000000 00:00 0", 0, 0, -1, "rd wr"},
  });
  EXPECT_EQ(kinds[1], MappingKind::kThreadStack);
  EXPECT_EQ(kinds[2], MappingKind::kArena);
  EXPECT_EQ(kinds[4], MappingKind::kThreadStack);
  EXPECT_EQ(kinds[6], MappingKind::kAnonymous);
}

TEST(Classify, LargeBlocksOfMalloc) {
  const auto kinds = kinds_of({
      {"7f0000010000-7f0000111000 rw-p 00000000 00:00 0"},  // 1 MiB and its header
      {"7f0001000000-7f0001100000 rw-p 00000000 00:00 0"},  // 1 MiB
      {"7f0002000000-7f0002011000 rw-p 00000000 00:00 0"},  // too small for malloc to map it
      {"7f0003000000-7f0003001000 rw-p 00000000 fe:00 9 /lib/x.so"},
      {"7f0003001000-7f0003102000 rw-p 00000000 00:00 0"},  // the library's own zeros
  });
  EXPECT_EQ(kinds[0], MappingKind::kMalloc);
  EXPECT_EQ(kinds[1], MappingKind::kAnonymous);
  EXPECT_EQ(kinds[2], MappingKind::kAnonymous);
  EXPECT_EQ(kinds[4], MappingKind::kAnonymous);
}

TEST(Classify, ArenasOfALanguage) {
  const auto kinds = kinds_of({{"1000-2000 r-xp 00000000 fe:00 9 /usr/bin/python3.11"},
                               {"7f0001000000-7f0001100000 rw-p 00000000 00:00 0"}});
  EXPECT_EQ(kinds[1], MappingKind::kArena);
}

Vma shared_between_two(int64_t bytes) {
  Vma vma;
  vma.rss = vma.shared_dirty = vma.anonymous = bytes;
  vma.pss = bytes / 2;
  return vma;
}

TEST(Divide, ByPssAPageOfTwoCountsHalf) {
  const Vma vma = shared_between_two(8192);
  const MappingBytes by_rss = divide(vma, false);
  EXPECT_EQ(by_rss.anonymous, 8192);
  EXPECT_EQ(by_rss.joint, 8192);
  const MappingBytes by_pss = divide(vma, true);
  EXPECT_NEAR(static_cast<double>(by_pss.anonymous), 4096, 512);
  EXPECT_EQ(by_pss.joint, by_pss.anonymous);
  EXPECT_EQ(by_pss.file, 0);
}

TEST(Divide, WrittenCopiesOfAFile) {
  Vma vma;
  vma.rss = vma.pss = 100 * 1024;
  vma.private_clean = 60 * 1024;
  vma.private_dirty = vma.anonymous = 40 * 1024;
  for (const bool proportional : {false, true}) {
    const MappingBytes bytes = divide(vma, proportional);
    EXPECT_EQ(bytes.anonymous, 40 * 1024);
    EXPECT_EQ(bytes.file, 60 * 1024);
    EXPECT_EQ(bytes.joint, 0);
  }
}

TEST(Divide, NothingIsNegativeWhateverTheFiguresAre) {
  // Figures of one mapping are counted page by page while others change it: they need not agree.
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    unsigned state = seed * 2654435761u;
    const auto next = [&] {
      return static_cast<int64_t>((state = state * 1664525u + 1013904223u) >> 24) * 1024;
    };
    Vma vma;
    vma.rss = next(), vma.pss = next(), vma.anonymous = next(), vma.shared_clean = next();
    vma.shared_dirty = next(), vma.private_clean = next(), vma.private_dirty = next();
    for (const bool proportional : {false, true}) {
      const MappingBytes bytes = divide(vma, proportional);
      ASSERT_GE(bytes.anonymous, 0) << seed;
      ASSERT_GE(bytes.file, 0) << seed;
      ASSERT_GE(bytes.joint, 0) << seed;
      if (!proportional) {
        ASSERT_EQ(bytes.anonymous + bytes.file, vma.rss);
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll
