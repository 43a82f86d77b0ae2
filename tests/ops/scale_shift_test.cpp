#include "op_case.h"

namespace plimsoll {
namespace {

TEST(ScaleShift, ChannelsFirst) {
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}).input<float>({2}, {10, -1}).input<float>({2}, {0.5f, 1});
  c.run().expect<float>(0, {1, 2, 3}, {10.5f, 20.5f, 30.5f, -3, -4, -5});
}

TEST(ScaleShift, ChannelsLastWithRelu) {
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6}).input<float>({2}, {10, -1}).input<float>({2}, {0.5f, 5});
  c.attr("channels_last", int64_t{1}).attr("activation", "Relu");
  c.run().expect<float>(0, {1, 3, 2}, {10.5f, 3, 30.5f, 1, 50.5f, 0});
}

TEST(ScaleShift, MixedLengthsAndAddend) {
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({2, 2}, {1, 2, 3, 4}).input<float>({1}, {2}).input<float>({2}, {10, 20});
  c.input<float>({2, 2}, {100, 200, 300, 400}).attr("channels_last", int64_t{1});
  c.run().expect<float>(0, {2, 2}, {112, 224, 316, 428});
}

TEST(ScaleShift, OddWidthsOnTwoThreads) {
  const int64_t rows = 3001, width = 19;
  std::vector<float> x, scale, shift, wanted;
  for (int64_t i = 0; i < width; ++i) scale.push_back(static_cast<float>(i) - 9), shift.push_back(0.25f);
  for (int64_t i = 0; i < rows * width; ++i) x.push_back(static_cast<float>(i % 7));
  for (int64_t i = 0; i < rows * width; ++i)
    wanted.push_back(x[static_cast<size_t>(i)] * scale[static_cast<size_t>(i % width)] + 0.25f);
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({rows, width}, x).input<float>({width}, scale).input<float>({width}, shift);
  c.attr("channels_last", int64_t{1}).threads(2).run().expect<float>(0, {rows, width}, wanted);
}

// Planes of one element.
TEST(ScaleShift, RowsOfChannelsFirst) {
  for (int64_t channels : {1, 5, 16, 33}) {
    std::vector<float> x, scale, shift, wanted;
    for (int64_t i = 0; i < channels; ++i)
      scale.push_back(static_cast<float>(i) - 2), shift.push_back(static_cast<float>(i));
    for (int64_t i = 0; i < 7 * channels; ++i) {
      const auto channel = static_cast<size_t>(i % channels);
      x.push_back(static_cast<float>(i));
      wanted.push_back(x.back() * scale[channel] + shift[channel]);
    }
    OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
    c.input<float>({7, channels, 1}, x).input<float>({channels}, scale).input<float>({channels}, shift);
    c.run().expect<float>(0, {7, channels, 1}, wanted);
  }
}

TEST(ScaleShift, Empty) {
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({0, 2, 3}, {}).input<float>({2}, {10, -1}).input<float>({1}, {0.5f});
  c.run().expect<float>(0, {0, 2, 3}, {});
}

TEST(ScaleShift, WrongNumberOfChannels) {
  OpCase c("ScaleShift", 1, std::string(kPlimsollDomain));
  c.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}).input<float>({3}, {1, 2, 3}).input<float>({1}, {0});
  EXPECT_THROW(c.run(), Error);
}

}  // namespace
}  // namespace plimsoll
