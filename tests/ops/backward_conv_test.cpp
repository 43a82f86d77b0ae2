// Operators that gradients make of convolutions.
#include <memory>

#include "ops/backward_case.h"

namespace plimsoll {
namespace {

// ---- ConvDataGradient -----------------------------------------------------------------------------

TEST(ConvDataGradient, SpreadsOutputsOverTheirWindows) {
  OpCase("ConvDataGradient", 1, kOurs)
      .input<float>({1, 1, 2}, {1, 2})
      .input<float>({1, 1, 2}, {3, 5})
      .input<int64_t>({3}, {1, 1, 5})
      .attr("strides", std::vector<int64_t>{2})
      .run()
      .expect<float>(0, {1, 1, 5}, {3, 5, 6, 10, 0});
}

TEST(ConvDataGradient, Groups) {
  OpCase("ConvDataGradient", 1, kOurs)
      .input<float>({1, 2, 1, 1}, {2, 3})
      .input<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<int64_t>({4}, {1, 2, 2, 2})
      .attr("group", int64_t{2})
      .run()
      .expect<float>(0, {1, 2, 2, 2}, {2, 4, 6, 8, 15, 18, 21, 24});
}

TEST(ConvDataGradient, WindowsThatSawOnlyPaddingGiveNothing) {
  OpCase("ConvDataGradient", 1, kOurs)
      .input<float>({1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<float>({1, 1, 1}, {2})
      .input<int64_t>({3}, {1, 1, 2})
      .attr("pads", std::vector<int64_t>{3, 3})
      .run()
      .expect<float>(0, {1, 1, 2}, {8, 10});
}

TEST(ConvDataGradient, NoWindowAtAll) {
  OpCase("ConvDataGradient", 1, kOurs)
      .input<float>({1, 1, 0}, {})
      .input<float>({1, 1, 3}, {1, 2, 3})
      .input<int64_t>({3}, {1, 1, 2})
      .run()
      .expect<float>(0, {1, 1, 2}, {0, 0});
}

TEST(ConvDataGradient, RefusesWhatDoesNotFit) {
  const auto op = [](const std::vector<int64_t>& dims, const std::vector<int64_t>& weights) {
    auto made = std::make_unique<OpCase>("ConvDataGradient", 1, kOurs);
    const auto ones = [](const std::vector<int64_t>& of) {
      int64_t count = 1;
      for (int64_t d : of) count *= d;
      return std::vector<float>(static_cast<size_t>(count), 1.0f);
    };
    made->input<float>(dims, ones(dims)).input<float>(weights, ones(weights));
    return made;
  };
  refuses(op({1, 2, 2}, {1, 1, 2})->input<int64_t>({3}, {1, 1, 3}), "expected 1 channels of dY");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int64_t>({3}, {1, 1, 9}), "does not belong");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int64_t>({3}, {1, 1, -3}), "does not belong");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int64_t>({3}, {2, 1, 3}), "dimensions 1 and 2 differ");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int64_t>({3}, {1, 4, 3}), "dimensions 1 and 4 differ");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int64_t>({2}, {1, 1}), "shape: expected 3 sizes");
  refuses(op({1, 1, 2}, {1, 1, 2})->input<int32_t>({3}, {1, 1, 3}), "type int32 is not allowed");
  refuses(op({1, 1, 4}, {1, 1, 0})->input<int64_t>({3}, {1, 1, 3}), "at least one tap");
  refuses(
      op({1, 1, 2}, {1, 1, 2})->input<int64_t>({3}, {1, 1, 3}).attr("kernel_shape", std::vector<int64_t>{3}),
      "'kernel_shape' says 3");
  refuses(op({1, 3, 2}, {3, 1, 2})->input<int64_t>({3}, {1, 2, 3}).attr("group", int64_t{2}),
          "do not divide");
  refuses(op({1, 1}, {1, 1})->input<int64_t>({2}, {1, 1}), "expected a rank from 3");
  refuses(op({1, 1, 2}, {1, 1, 2, 1})->input<int64_t>({3}, {1, 1, 3}), "expected a rank from 3 to 3");
  refuses(*op({1, 1, 2}, {1, 1, 2}), "inputs");
}

// ---- ConvWeightGradient ---------------------------------------------------------------------------

TEST(ConvWeightGradient, SumsOverImagesAndPixels) {
  OpCase("ConvWeightGradient", 1, kOurs)
      .input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({2, 1, 2}, {1, -1, 2, 0})
      .attr("kernel_shape", std::vector<int64_t>{2})
      .run()
      .expect<float>(0, {1, 1, 2}, {7, 9});
}

TEST(ConvWeightGradient, StridesAndPads) {
  OpCase("ConvWeightGradient", 1, kOurs)
      .input<float>({1, 1, 5}, {1, 2, 3, 4, 5})
      .input<float>({1, 1, 2}, {1, 2})
      .attr("kernel_shape", std::vector<int64_t>{2})
      .attr("strides", std::vector<int64_t>{2})
      .run()
      .expect<float>(0, {1, 1, 2}, {7, 10});
  OpCase("ConvWeightGradient", 1, kOurs)
      .input<double>({1, 1, 2}, {1, 2})
      .input<double>({1, 1, 3}, {1, 2, 3})
      .attr("kernel_shape", std::vector<int64_t>{2})
      .attr("pads", std::vector<int64_t>{1, 1})
      .run()
      .expect<double>(0, {1, 1, 2}, {8, 5});
}

TEST(ConvWeightGradient, ChannelsAndGroups) {
  OpCase("ConvWeightGradient", 1, kOurs)
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 2, 1}, {2, 3})
      .attr("kernel_shape", std::vector<int64_t>{2})
      .run_alone()
      .expect<float>(0, {2, 2, 2}, {2, 4, 6, 8, 3, 6, 9, 12});
  OpCase("ConvWeightGradient", 1, kOurs)
      .input<float>({1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 2, 1}, {2, 3})
      .attr("kernel_shape", std::vector<int64_t>{2})
      .attr("group", int64_t{2})
      .run_alone()
      .expect<float>(0, {2, 1, 2}, {2, 4, 9, 12});
}

TEST(ConvWeightGradient, RefusesWhatDoesNotFit) {
  const auto op = [](const std::vector<int64_t>& dims, const std::vector<float>& gradient,
                     int64_t kernel = 2) {
    auto made = std::make_unique<OpCase>("ConvWeightGradient", 1, kOurs);
    made->input<float>({2, 1, 3}, {1, 2, 3, 4, 5, 6}).input<float>(dims, gradient);
    if (kernel > 0) made->attr("kernel_shape", std::vector<int64_t>(1, kernel));
    return made;
  };
  refuses(*op({1, 1, 2}, {1, 1}), "expected 2 images of dY, found 1");
  refuses(*op({2, 1, 1}, {1, 1}), "does not belong to X");
  refuses(*op({2, 1, 3}, {1, 1, 1, 1, 1, 1}), "does not belong to X");
  refuses(*op({2, 2}, {1, 1, 1, 1}), "expected a rank from 3 to 3");
  refuses(*op({2, 1, 2}, {1, 1, 1, 1}, 0), "'kernel_shape' is missing");
  refuses(op({2, 1, 2}, {1, 1, 1, 1})->attr("group", int64_t{2}), "do not divide");
  refuses(op({2, 1, 2}, {1, 1, 1, 1})->attr("group", int64_t{0}), "'group'");
  refuses(op({2, 1, 2}, {1, 1, 1, 1})->attr("strides", std::vector<int64_t>{1, 1}), "'strides'");
  refuses(OpCase("ConvWeightGradient", 1, kOurs)
              .input<float>({1, 1, 2}, {1, 2})
              .input<double>({1, 1, 1}, {1})
              .attr("kernel_shape", std::vector<int64_t>{2}),
          "expected one type");
}

}  // namespace
}  // namespace plimsoll
