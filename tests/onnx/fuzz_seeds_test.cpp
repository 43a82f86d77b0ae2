// Files that fuzzers and mutations found faults with, replayed as they were found: each is refused with an
// Error, or read, written and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "onnx/try_read.h"
#include "onnx/try_run.h"
#include "plimsoll/error.h"
#include "support/places.h"

namespace plimsoll {

TEST(FuzzSeeds, AreRefusedOrRun) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/fuzz/seeds")) {
    if (entry.path().extension() != ".onnx") continue;
    ++files;
    std::stringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    EXPECT_NO_THROW(try_read(bytes.str())) << entry.path();
    try {
      try_run(bytes.str());
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace plimsoll
