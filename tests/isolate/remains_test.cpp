#include "isolate/remains.h"

#include <gtest/gtest.h>

#include "isolate/enclosure.h"
#include "isolate/mount_table.h"

namespace plimsoll::test {
namespace {

TEST(Remains, SystemVListsAreRead) {
  const auto segments = parse_system_v(
      SystemVKind::kMemory,
      "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      "
      "atime      "
      "dtime      ctime                   rss                  swap\n"
      "     24301          7  1600               1048576  4711  4711      2  1000  1000  1000  1000 1 2 3 "
      "524288 0\n");
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].key, 24301);
  EXPECT_EQ(segments[0].id, 7);
  EXPECT_EQ(segments[0].maker, 4711);
  EXPECT_EQ(segments[0].attached, 2);
  EXPECT_EQ(segments[0].owner, 1000);
  EXPECT_EQ(segments[0].bytes, 524288);
  EXPECT_TRUE(parse_system_v(SystemVKind::kQueue, "").empty());
  EXPECT_TRUE(parse_system_v(SystemVKind::kQueue, "names\n1 2 3\n").empty()) << "a line that was cut";
}

TEST(MountTable, IsReadAsTheKernelWritesIt) {
  const auto mounts = parse_mounts(
      "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
      "37 36 0:35 / /dev/shm ro,nosuid - tmpfs tmpfs rw\n"
      "cut short\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].point, "/mnt 2");
  EXPECT_EQ(mounts[0].type, "ext3");
  EXPECT_FALSE(mounts[0].read_only);
  EXPECT_EQ(mounts[1].device, "0:35");
  EXPECT_TRUE(mounts[1].read_only);
  EXPECT_FALSE(mount_table()->empty());
}

TEST(Unheld, IsEmptyOnlyWhereTheKernelHoldsEverything) {
  Command command;
  command.argv = {"/bin/true"};
  const Limits limits{.memory_bytes = int64_t{64} << 20, .processes = 9};
  const auto sentences = Unheld(command, limits);
  Limits strict = limits;
  strict.require_hold = true;
  if (sentences.empty()) {
    EXPECT_EQ(Exec(command, strict).receipt.exit_code, 0);
    return;
  }
  try {
    Exec(command, strict);
    FAIL() << sentences.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotImplemented);
  }
}

}  // namespace
}  // namespace plimsoll::test
