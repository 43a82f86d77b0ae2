#include "memory/mapping.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "plimsoll/error.h"

namespace plimsoll {

// A size that only the data told may be any number. Told at once, it is an Error; found out page by page, the
// end of the process, or of another.
TEST(Mapping, MoreThanTheMachineHasIsRefused) {
  int policy = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> policy;
  if (policy == 1) GTEST_SKIP() << "this machine was told to refuse nothing (vm.overcommit_memory)";
  long swap_kib = 0;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;) {
    if (word == "SwapTotal:") meminfo >> swap_kib;
  }
  const int64_t machine = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) + swap_kib * 1024;
  try {
    const Mapping mapping(2 * machine, false);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  }
}

}  // namespace plimsoll
