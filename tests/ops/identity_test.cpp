#include "ops/op_case.h"

namespace plimsoll {

TEST(Identity, CopiesWhatItIsGiven) {
  OpCase("Identity", 16).input<float>({2, 2}, {1, 2, 3, 4}).run().expect<float>(0, {2, 2}, {1, 2, 3, 4});
}

TEST(Identity, RejectsAnUnknownAttribute) {
  EXPECT_THROW(OpCase("Identity", 16).input<float>({1}, {1}).attr("axis", int64_t{1}).run(), Error);
}

}  // namespace plimsoll
