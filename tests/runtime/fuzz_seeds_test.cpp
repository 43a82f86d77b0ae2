// Files that once crashed a run: an Error or a result, never a crash.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/models.h"

namespace plimsoll {

TEST(FuzzSeeds, DoNotCrash) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PLIMSOLL_SOURCE_DIR) + "/fuzz/seeds")) {
    if (entry.path().extension() != ".onnx") continue;
    ++files;
    try {
      SessionOptions options;
      options.memory_limit_bytes = 64 << 20;
      Session session(Env(), entry.path().string(), options.SetIntraOpNumThreads(1));
      Shapes shapes;
      for (const ValueInfo& info : session.GetInputs()) {
        std::vector<int64_t> shape = info.dims;
        for (int64_t& d : shape) d = d < 0 ? 2 : d;
        shapes[info.name] = shape;
      }
      bind_all(session, shapes);
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace plimsoll
