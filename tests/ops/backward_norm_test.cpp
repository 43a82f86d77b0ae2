// Operators that gradients make of normalizations.
#include <memory>

#include "ops/backward_case.h"

namespace plimsoll {
namespace {

// ---- BatchNormalizationGradient -------------------------------------------------------------------

const std::vector<float> kImages{1, 2, 0, 1, 3, 6, 2, 5}, kImageGradients{1, 0, 1, 2, 0, 2, -1, 0};

TEST(BatchNormalizationGradient, StatisticsOfTheBatchDependOnX) {
  OpCase("BatchNormalizationGradient", 1, kOurs)
      .input<float>({2, 2, 2}, kImages)
      .input<float>({2, 2, 2}, kImageGradients)
      .input<float>({2}, {2, 0.5f})
      .attr("epsilon", 0.5f)
      .outputs(3)
      .run()
      .expect<float>(0, {2, 2, 2}, {0.75f, -0.5f, 0, 0.3125f, -0.75f, 0.5f, -0.375f, 0.0625f})
      .expect<float>(1, {2}, {2, -2})
      .expect<float>(2, {2}, {3, 2});
}

TEST(BatchNormalizationGradient, StatisticsThatAreGivenDoNot) {
  OpCase("BatchNormalizationGradient", 1, kOurs)
      .input<float>({2, 2, 2}, kImages)
      .input<float>({2, 2, 2}, kImageGradients)
      .input<float>({2}, {2, 0.5f})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {3.5f, 0.5f})
      .attr("epsilon", 0.5f)
      .outputs(3)
      .run()
      .expect<float>(0, {2, 2, 2}, {1, 0, 0.5f, 1, 0, 2, -0.5f, 0})
      .expect<float>(1, {2}, {5, -4})
      .expect<float>(2, {2}, {3, 2});
}

TEST(BatchNormalizationGradient, RefusesWhatDoesNotFit) {
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<float>& gradient) {
    auto made = std::make_unique<OpCase>("BatchNormalizationGradient", 1, kOurs);
    made->input<float>({2, 2, 2}, kImages).input<float>(dims, gradient).outputs(3);
    return made;
  };
  refuses(op({2, 2, 1}, {1, 2, 3, 4})->input<float>({2}, {1, 1}), "input 1: expected shape");
  refuses(op({8}, kImageGradients)->input<float>({2}, {1, 1}), "input 1: expected shape");
  const auto whole = [&] { return op({2, 2, 2}, kImageGradients); };
  refuses(whole()->input<float>({1}, {1}), "expected 2 elements, found 1");
  refuses(whole()->input<int32_t>({2}, {1, 1}), "type int32 is not allowed");
  refuses(whole()->input<float>({2}, {1, 1}).input<float>({2}, {1, 1}), "both a mean and a variance");
  refuses(whole()->input<float>({2}, {1, 1}).input<float>({1}, {1}).input<float>({2}, {1, 1}),
          "expected 2 elements, found 1");
  refuses(whole()->input<float>({2}, {1, 1}).input<int64_t>({2}, {1, 1}).input<float>({2}, {1, 1}),
          "type int64 is not allowed");
  refuses(*whole(), "inputs");
}

// ---- LayerNormalizationGradient -------------------------------------------------------------------

const std::vector<float> kRows{1, 2, 4, 0, -1, 3}, kRowGradients{1, 0, 2, -1, 1, 0.5f};

TEST(LayerNormalizationGradient, OfRowsWithAScale) {
  OpCase("LayerNormalizationGradient", 1, kOurs)
      .input<float>({2, 3}, kRows)
      .input<float>({2, 3}, kRowGradients)
      .input<float>({3}, {1, 2, 0.5f})
      .attr("epsilon", 0.25f)
      .outputs(3)
      .run()
      .expect<float>(0, {2, 3}, {0.309133f, -0.480873f, 0.17174f, -0.882862f, 0.685561f, 0.197302f})
      .expect<float>(1, {3}, {-0.61599f, -0.940721f, 3.1392f})
      .expect<float>(2, {3}, {0, 1, 2.5f});
}

TEST(LayerNormalizationGradient, NothingIsSubtractedIfNotCentered) {
  OpCase("LayerNormalizationGradient", 1, kOurs)
      .input<float>({2, 3}, kRows)
      .input<float>({2, 3}, kRowGradients)
      .input<float>({3}, {1, 2, 0.5f})
      .attr("epsilon", 0.25f)
      .attr("centered", int64_t{0})
      .outputs(2)
      .run()
      .expect<float>(0, {2, 3}, {0.286014f, -0.170754f, 0.029882f, -0.528271f, 0.995114f, 0.316348f})
      .expect<float>(1, {3}, {0.371391f, -0.528271f, 3.76353f});
}

TEST(LayerNormalizationGradient, RefusesWhatDoesNotFit) {
  const auto op = [](const std::vector<int64_t>& dims, const std::vector<float>& gradient) {
    auto made = std::make_unique<OpCase>("LayerNormalizationGradient", 1, kOurs);
    made->input<float>({2, 3}, kRows).input<float>(dims, gradient).outputs(3);
    return made;
  };
  refuses(*op({3}, {1, 2, 3}), "input 1: expected shape");
  refuses(*op({3, 2}, kRowGradients), "input 1: expected shape");
  refuses(op({2, 3}, kRowGradients)->input<float>({2}, {1, 1}), "scale: expected 3 elements");
  refuses(op({2, 3}, kRowGradients)->input<double>({3}, {1, 1, 1}), "expected one type");
  refuses(op({2, 3}, kRowGradients)->attr("axis", int64_t{2}), "axis 2 is outside");
  refuses(OpCase("LayerNormalizationGradient", 1, kOurs).input<float>({}, {1}).input<float>({}, {1}),
          "axis -1 is outside");
  refuses(OpCase("LayerNormalizationGradient", 1, kOurs).input<float>({2, 3}, kRows), "inputs");
}

}  // namespace
}  // namespace plimsoll
