#include "ops/op_case.h"

namespace plimsoll {

TEST(Identity, CopiesWhatItIsGiven) {
  OpCase("Identity", 16).input<float>({2, 2}, {1, 2, 3, 4}).run().expect<float>(0, {2, 2}, {1, 2, 3, 4});
}

TEST(Identity, AnUnknownAttributeIsAWarningAndAnErrorWhereTheModelIsStrict) {
  OpCase lenient("Identity", 16), strict("Identity", 16);
  lenient.input<float>({1}, {1}).attr("axis", int64_t{1}).run().expect<float>(0, {1}, {1});
  ASSERT_EQ(lenient.graph().warnings.size(), 1u);
  EXPECT_NE(lenient.graph().warnings[0].find("unknown attribute 'axis'"), std::string_view::npos);
  strict.graph().strict = true;
  EXPECT_THROW(strict.input<float>({1}, {1}).attr("axis", int64_t{1}).run(), Error);
}

}  // namespace plimsoll
