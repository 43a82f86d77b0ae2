// Operators of ours that gradients make of layers: expected numbers are those of the definition, worked out
// by hand or as quotients of differences. A file may name them with anything, so they refuse what does not
// fit.
#include <memory>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr const char* kOurs = "ai.plimsoll";

// `why` is a part of what the refusal says.
void refuses(OpCase& op, const std::string& why) {
  try {
    op.run();
    ADD_FAILURE() << "was not refused; expected: " << why;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
  }
}

// ---- AccumulateGradient ---------------------------------------------------------------------------

TEST(AccumulateGradient, AddsOrBeginsAnew) {
  for (bool anew : {false, true}) {
    OpCase("AccumulateGradient", 1, kOurs)
        .input<float>({3}, {1, 2, 3})
        .input<float>({3}, {10, 20, -30})
        .input<bool>({}, {anew})
        .run()
        .expect<float>(0, {3}, anew ? std::vector<float>{10, 20, -30} : std::vector<float>{11, 22, -27});
  }
}

TEST(AccumulateGradient, RefusesOtherShapesAndTypes) {
  const std::vector<float> two{1, 2}, three{1, 2, 3};
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<float>& gradient) {
    auto made = std::make_unique<OpCase>("AccumulateGradient", 1, kOurs);
    made->input<float>({3}, three).input<float>(dims, gradient);
    return made;
  };
  refuses(op({2}, two)->input<bool>({}, {false}), "input 1: expected shape");
  refuses(op({3, 1}, three)->input<bool>({}, {false}), "input 1: expected shape");
  refuses(op({3}, three)->input<bool>({0}, {}), "input 2: expected one element");
  refuses(op({3}, three)->input<bool>({2}, {false, true}), "input 2: expected one element");
  refuses(op({3}, three)->input<int64_t>({}, {1}), "type int64 is not allowed");
  refuses(*op({3}, three), "inputs");
  refuses(OpCase("AccumulateGradient", 1, kOurs)
              .input<double>({1}, {1})
              .input<float>({1}, {1})
              .input<bool>({}, {true}),
          "expected one type");
}

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

// ---- ClassLossGradient ----------------------------------------------------------------------------

TEST(ClassLossGradient, SoftmaxOfTheMean) {
  OpCase("ClassLossGradient", 1, kOurs)
      .input<float>({2, 3}, {1, 2, 0, 0, -1, 3})
      .input<int64_t>({2}, {1, 2})
      .input<float>({3}, {1, 0.5f, 2})
      .input<float>({}, {3})
      .attr("softmax", int64_t{1})
      .run()
      .expect<float>(0, {2, 3}, {0.146837f, -0.200855f, 0.0540183f, 0.11187f, 0.0411548f, -0.153025f});
}

TEST(ClassLossGradient, EachSampleOfAnImageHasItsOwn) {
  OpCase("ClassLossGradient", 1, kOurs)
      .input<double>({1, 2, 2}, {1, 2, 3, 4})
      .input<int32_t>({1, 2}, {1, 0})
      .absent()
      .input<double>({1, 2}, {3, 5})
      .attr("reduction", "none")
      .run()
      .expect<double>(0, {1, 2, 2}, {0, -5, -3, 0});
}

TEST(ClassLossGradient, WhatIsIgnoredCountsForNothing) {
  OpCase("ClassLossGradient", 1, kOurs)
      .input<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<int64_t>({4}, {-7, 0, -7, 1})
      .absent()
      .input<float>({}, {2})
      .attr("reduction", "sum")
      .attr("ignore_index", int64_t{-7})
      .run()
      .expect<float>(0, {4, 2}, {0, 0, -2, 0, 0, 0, 0, -2});
}

TEST(ClassLossGradient, RefusesWhatIsNoClass) {
  for (const int64_t target : {-1, 2}) {
    refuses(OpCase("ClassLossGradient", 1, kOurs)
                .input<float>({2, 2}, {1, 2, 3, 4})
                .input<int64_t>({2}, {1, target})
                .absent()
                .input<float>({}, {2}),
            "is outside [0, 2)");
  }
}

TEST(ClassLossGradient, RefusesWhatDoesNotFit) {
  const std::vector<float> scores{1, 2, 0, 0, -1, 3};
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<int64_t>& targets) {
    auto made = std::make_unique<OpCase>("ClassLossGradient", 1, kOurs);
    made->input<float>({2, 3}, scores).input<int64_t>(dims, targets);
    return made;
  };
  refuses(op({1}, {1})->absent().input<float>({}, {1}), "input 1: expected shape");
  refuses(op({2, 1}, {1, 1})->absent().input<float>({}, {1}), "input 1: expected shape");
  refuses(op({2}, {1, 1})->input<float>({2}, {1, 1}).input<float>({}, {1}), "input 2: expected shape");
  refuses(op({2}, {1, 1})->input<float>({}, {1}).input<float>({}, {1}), "input 2: expected shape");
  refuses(op({2}, {1, 1})->absent().input<float>({0}, {}), "dLoss: expected one element");
  refuses(op({2}, {1, 1})->absent().input<float>({2}, {1, 1}), "dLoss: expected one element");
  refuses(op({2}, {1, 1})->absent().input<float>({}, {1}).attr("reduction", "none"),
          "input 3: expected shape");
  refuses(op({2}, {1, 1})->absent().input<double>({}, {1}), "expected one type");
  refuses(op({2}, {1, 1})->absent().input<float>({}, {1}).attr("reduction", "most"), "'reduction'");
  refuses(op({2}, {1, 1})->absent(), "inputs");
  refuses(OpCase("ClassLossGradient", 1, kOurs)
              .input<float>({2, 3}, scores)
              .input<float>({2}, {1, 1})
              .absent()
              .input<float>({}, {1}),
          "type float is not allowed");
  refuses(OpCase("ClassLossGradient", 1, kOurs)
              .input<float>({6}, scores)
              .input<int64_t>({}, {1})
              .absent()
              .input<float>({}, {1}),
          "expected a rank from 2");
}

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

// ---- DropoutGradient ------------------------------------------------------------------------------

TEST(DropoutGradient, DropsWhatDropoutDropped) {
  const std::vector<float> numbers(64, 3.0f);
  OpCase forward("Dropout", 13);  // its node, and so its stream, is named "node"
  forward.input<float>({64}, numbers).input<float>({}, {0.5f}).input<bool>({}, {true});
  forward.attr("seed", int64_t{7}).outputs(2).run();
  std::vector<float> expected(64);
  size_t kept = 0;
  for (size_t i = 0; i < 64; ++i) {
    const bool keeps = forward.result(1).as<bool>()[i];
    expected[i] = keeps ? 2 * (static_cast<float>(i) + 1) : 0;
    kept += keeps ? 1 : 0;
  }
  EXPECT_GT(kept, 8u);
  EXPECT_LT(kept, 56u);
  std::vector<float> gradient(64);
  for (size_t i = 0; i < 64; ++i) gradient[i] = static_cast<float>(i) + 1;
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({64}, gradient)
      .attr("stream", "node")
      .attr("seed", int64_t{7})
      .attr("trains", int64_t{1})
      .run()
      .expect<float>(0, {64}, expected);
}

TEST(DropoutGradient, PassesWhereNothingWasDropped) {
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({2}, {1, -2})
      .attr("stream", "node")
      .run()
      .expect<float>(0, {2}, {1, -2});
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({2}, {1, -2})
      .input<float>({}, {0.5f})
      .input<bool>({}, {false})
      .attr("stream", "node")
      .attr("trains", int64_t{1})
      .run()
      .expect<float>(0, {2}, {1, -2});
}

TEST(DropoutGradient, RefusesWhatDoesNotFit) {
  const auto op = [] {
    auto made = std::make_unique<OpCase>("DropoutGradient", 1, kOurs);
    made->input<float>({2}, {1, 2}).attr("stream", "node");
    return made;
  };
  refuses(OpCase("DropoutGradient", 1, kOurs).input<float>({2}, {1, 2}), "stream");
  refuses(OpCase("DropoutGradient", 1, kOurs).input<int64_t>({2}, {1, 2}).attr("stream", "node"),
          "type int64 is not allowed");
  refuses(op()->attr("trains", int64_t{1}).attr("ratio", 1.0f), "[0, 1)");
  refuses(op()->attr("trains", int64_t{1}).attr("ratio", -0.5f), "[0, 1)");
  refuses(op()->attr("ratio", 1.5f).absent().input<bool>({}, {true}), "[0, 1)");
  refuses(op()->input<float>({}, {1.0f}).input<bool>({}, {true}), "[0, 1)");
  refuses(op()->input<float>({0}, {}).input<bool>({}, {true}), "input 1: expected one element");
  refuses(op()->input<float>({}, {0.5f}).input<bool>({0}, {}), "input 2: expected one element");
  refuses(op()->input<float>({}, {0.5f}).input<float>({}, {1}), "type float is not allowed");
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

// ---- PoolGradient ---------------------------------------------------------------------------------

TEST(PoolGradient, AverageShares) {
  const auto op = [](int64_t padded) {
    auto made = std::make_unique<OpCase>("PoolGradient", 1, kOurs);
    made->input<float>({1, 1, 2}, {2, 4}).input<int64_t>({3}, {1, 1, 3}).attr("kind", "average");
    made->attr("kernel_shape", std::vector<int64_t>{2}).attr("strides", std::vector<int64_t>{2});
    if (padded >= 0) made->attr("pads", std::vector<int64_t>{1, 0}).attr("count_include_pad", padded);
    return made;
  };
  op(0)->run().expect<float>(0, {1, 1, 3}, {2, 2, 2});
  op(1)->run().expect<float>(0, {1, 1, 3}, {1, 2, 2});
  op(-1)->attr("ceil_mode", int64_t{1}).run().expect<float>(0, {1, 1, 3}, {1, 1, 4});
}

TEST(PoolGradient, TheFirstOfTheLargestTakesAll) {
  OpCase("PoolGradient", 1, kOurs)
      .input<float>({1, 1, 1, 2}, {3, 7})
      .input<int64_t>({4}, {1, 1, 2, 3})
      .input<float>({1, 1, 2, 3}, {1, 5, 5, 4, 5, 0})
      .attr("kind", "max")
      .attr("kernel_shape", std::vector<int64_t>{2, 2})
      .run()
      .expect<float>(0, {1, 1, 2, 3}, {0, 10, 0, 0, 0, 0});
}

TEST(PoolGradient, ByTheNorm) {
  OpCase("PoolGradient", 1, kOurs)
      .input<float>({1, 1, 2}, {1, 2})
      .input<int64_t>({3}, {1, 1, 4})
      .input<float>({1, 1, 4}, {1, -2, 2, 3})
      .input<float>({1, 1, 2}, {2.080084f, 3.271066f})
      .attr("kind", "lp")
      .attr("p", 3.0f)
      .attr("kernel_shape", std::vector<int64_t>{2})
      .attr("strides", std::vector<int64_t>{2})
      .run()
      .expect<float>(0, {1, 1, 4}, {0.23112f, -0.924482f, 0.747672f, 1.68226f});
}

TEST(PoolGradient, RefusesWhatDoesNotFit) {
  const std::vector<int64_t> two{2}, shape{1, 1, 3};
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<float>& gradient,
                      const std::vector<int64_t>& sizes, const char* kind = "average") {
    auto made = std::make_unique<OpCase>("PoolGradient", 1, kOurs);
    made->input<float>(dims, gradient).input<int64_t>({static_cast<int64_t>(sizes.size())}, sizes);
    made->attr("kind", kind).attr("kernel_shape", two);
    return made;
  };
  refuses(*op({1, 1, 2}, {1, 2}, {1, 1, 8}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {4, 1, 3}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {1, 9, 3}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {1, 3}), "shape: expected 3 sizes");
  refuses(*op({1, 2}, {1, 2}, {1, 3}), "expected a rank from 3");
  refuses(*op({1, 1, 2}, {1, 2}, shape, "least"), "'kind'");
  refuses(*op({1, 1, 2}, {1, 2}, shape, "max"), "input 2 is missing");
  refuses(op({1, 1, 2}, {1, 2}, shape, "lp")->input<float>({1, 1, 3}, {1, 2, 3}), "input 3 is missing");
  const auto with_x = [&](const std::vector<int64_t>& dims) {
    auto made = op({1, 1, 2}, {1, 2}, shape, "max");
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    made->input<float>(dims, std::vector<float>(static_cast<size_t>(count), 1.0f));
    return made;
  };
  refuses(*with_x({1, 1, 4}), "input 0: expected shape");
  refuses(*with_x({2, 1, 3}), "input 0: expected shape");
  refuses(*with_x({1, 2, 3}), "input 0: expected shape");
  refuses(*with_x({3}), "input 0");
  refuses(*with_x({1, 1, 3, 1}), "input 0");
  refuses(with_x({1, 1, 3})->attr("pads", std::vector<int64_t>{0, 0, 0, 0}), "'pads'");
  refuses(op({1, 1, 2}, {1, 2}, shape, "lp")->input<float>({1, 1, 3}, {1, 2, 3}).input<float>({1, 1, 1}, {1}),
          "input 3: expected shape");
  refuses(op({1, 1, 2}, {1, 2}, shape, "max")->input<double>({1, 1, 3}, {1, 2, 3}), "expected one type");
}

// ---- SoftmaxGradient ------------------------------------------------------------------------------

TEST(SoftmaxGradient, OfARowAndOfColumns) {
  OpCase("SoftmaxGradient", 1, kOurs)
      .input<float>({1, 3}, {0.2f, 0.3f, 0.5f})
      .input<float>({1, 3}, {1, -1, 2})
      .run()
      .expect<float>(0, {1, 3}, {0.02f, -0.57f, 0.55f});
  OpCase("SoftmaxGradient", 1, kOurs)
      .input<float>({3, 2}, {0.2f, 0.25f, 0.3f, 0.25f, 0.5f, 0.5f})
      .input<float>({3, 2}, {1, 4, -1, 0, 2, 2})
      .attr("axis", int64_t{0})
      .run()
      .expect<float>(0, {3, 2}, {0.02f, 0.5f, -0.57f, -0.5f, 0.55f, 0});
}

TEST(SoftmaxGradient, OfTheLogarithm) {
  OpCase("SoftmaxGradient", 1, kOurs)
      .input<double>({3}, {-1.6094379, -1.2039728, -0.6931472})
      .input<double>({3}, {1, -1, 2})
      .attr("logarithm", int64_t{1})
      .run()
      .expect<double>(0, {3}, {0.6, -1.6, 1});
}

TEST(SoftmaxGradient, AllDimensionsFromTheAxisOnAreOneRow) {
  OpCase("SoftmaxGradient", 1, kOurs)
      .input<float>({1, 2, 2}, {0.1f, 0.2f, 0.3f, 0.4f})
      .input<float>({1, 2, 2}, {1, 0, 0, 0})
      .attr("axis", int64_t{1})
      .attr("flattens", int64_t{1})
      .run()
      .expect<float>(0, {1, 2, 2}, {0.09f, -0.02f, -0.03f, -0.04f});
}

TEST(SoftmaxGradient, RefusesWhatDoesNotFit) {
  const auto op = [] {
    auto made = std::make_unique<OpCase>("SoftmaxGradient", 1, kOurs);
    made->input<float>({2, 2}, {0.5f, 0.5f, 0.5f, 0.5f});
    return made;
  };
  refuses(op()->input<float>({2}, {1, 2}), "input 1: expected shape");
  refuses(op()->input<float>({4}, {1, 2, 3, 4}), "input 1: expected shape");
  refuses(op()->input<double>({2, 2}, {1, 2, 3, 4}), "expected one type");
  refuses(op()->input<float>({2, 2}, {1, 2, 3, 4}).attr("axis", int64_t{2}), "axis 2 is outside");
  refuses(op()->absent(), "input");
  refuses(OpCase("SoftmaxGradient", 1, kOurs).input<int64_t>({1}, {1}).input<int64_t>({1}, {1}),
          "type int64 is not allowed");
}

// ---- ReluGradient ---------------------------------------------------------------------------------

TEST(ReluGradient, PassesWhereTheOutputIsPositive) {
  OpCase("ReluGradient", 1, kOurs)
      .input<float>({2, 2}, {0, 2, 1, 0})
      .input<float>({2, 2}, {1, 2, -3, 4})
      .run()
      .expect<float>(0, {2, 2}, {0, 2, -3, 0});
}

TEST(ReluGradient, RefusesWhatDoesNotFit) {
  const auto op = [] {
    auto made = std::make_unique<OpCase>("ReluGradient", 1, kOurs);
    made->input<float>({2}, {1, 2});
    return made;
  };
  refuses(op()->input<float>({4}, {1, 2, 3, 4}), "input 1: expected shape");
  refuses(op()->input<float>({1, 2}, {1, 2}), "input 1: expected shape");
  refuses(op()->input<double>({2}, {1, 2}), "expected one type");
  refuses(*op(), "inputs");
  refuses(OpCase("ReluGradient", 1, kOurs).input<int32_t>({1}, {1}).input<int32_t>({1}, {1}),
          "type int32 is not allowed");
}

// ---- RecurrentGradient ----------------------------------------------------------------------------

TEST(RecurrentGradient, Rnn) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 2, 1}, {0.5f, -1, 0.25f, 2})
      .input<float>({1, 1, 1}, {0.5f})
      .absent()
      .absent()
      .absent()
      .input<float>({2, 1, 2, 1}, {1, 2, -1, 0.5f})
      .attr("cell", "rnn")
      .outputs(3)
      .run()
      .expect<float>(0, {1, 2, 2, 1}, {0.471826f, 0.855203f, -0.80011f, 0.072642f})
      .expect<float>(1, {1, 2, 2, 1}, {0, 0, 0.462117f, -0.761594f})
      .expect<float>(2, {1, 2, 1}, {0.235913f, 0.427601f});
}

TEST(RecurrentGradient, BothDirections) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<double>({2, 2, 2, 1}, {0.5, -2, 0.25, 2, 0.5, -2, 0.25, 2})
      .input<double>({2, 1, 1}, {0.5, 0.5})
      .absent()
      .absent()
      .absent()
      .input<double>({2, 2, 2, 1}, {1, 2, 1, 2, -1, 0.5, -1, 0.5})
      .attr("cell", "rnn")
      .attr("functions", std::vector<int64_t>{2, 2})  // Relu both ways
      .attr("alphas", std::vector<float>{0, 0})
      .attr("betas", std::vector<float>{0, 0})
      .outputs(3)
      .run()
      .expect<double>(0, {2, 2, 2, 1}, {0.5, 0, -1, 0.5, 1, 0, -0.5, 0.5})
      .expect<double>(1, {2, 2, 2, 1}, {0, 0, 0.5, 0, 0.25, 2, 0, 0})
      .expect<double>(2, {2, 2, 1}, {0.25, 0, -0.25, 0.25});
}

TEST(RecurrentGradient, TwoStatesMixThroughR) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 2}, {0.5f, -0.25f, 0.1f, 0.75f})
      .input<float>({1, 2, 2}, {0.5f, -1, 0.25f, 2})
      .absent()
      .input<float>({1, 1, 2}, {0.3f, -0.2f})
      .absent()
      .input<float>({2, 1, 1, 2}, {1, -1, 0.5f, 2})
      .input<float>({1, 1, 2}, {0.25f, 1})
      .attr("cell", "rnn")
      .outputs(3)
      .run_alone()
      .expect<float>(0, {1, 2, 1, 2}, {0.995873f, 3.35258f, 0.332274f, 2.96048f}, 2e-5)
      .expect<float>(1, {1, 2, 1, 2}, {0.3f, -0.2f, 0.691069f, -0.519022f})
      .expect<float>(2, {1, 1, 2}, {1.33608f, 5.70928f}, 2e-5);
}

TEST(RecurrentGradient, Lstm) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 4}, {0.5f, -0.5f, 1, 0.25f, -0.25f, 0.75f, 0.5f, -1})
      .input<float>({1, 4, 1}, {0.5f, -0.25f, 1, 0.75f})
      .absent()
      .input<float>({1, 1, 1}, {0.2f})
      .input<float>({1, 1, 1}, {-0.4f})
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .input<float>({1, 1, 1}, {0.25f})
      .input<float>({1, 1, 1}, {-0.5f})
      .attr("cell", "lstm")
      .outputs(4)
      .run()
      .expect<float>(0, {1, 2, 1, 4},
                     {0.0291759f, -0.0145776f, -0.0238834f, 0.185424f, 0.0102949f, -0.0581176f, 0.000799525f,
                      -0.00970034f})
      .expect<float>(1, {1, 2, 1, 1}, {0.2f, -0.0226886f})
      .expect<float>(2, {1, 1, 1}, {0.133417f})
      .expect<float>(3, {1, 1, 1}, {0.257947f});
}

TEST(RecurrentGradient, Gru) {
  const std::vector<float> p{0.5f, -0.5f, 1, -0.25f, 0.75f, 0.5f}, r{0.5f, -0.25f, 0.75f};
  const std::vector<float> of_p{-0.117262f, 0.0106345f, 0.154942f, -0.0134234f, 0.0133061f, 0.146031f};
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 3}, p)
      .input<float>({1, 3, 1}, r)
      .absent()
      .input<float>({1, 1, 1}, {0.4f})
      .absent()
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .attr("cell", "gru")
      .outputs(5)
      .run()
      .expect<float>(0, {1, 2, 1, 3}, of_p)
      .expect<float>(1, {1, 2, 1, 1}, {0.4f, 0.533638f})
      .expect<float>(2, {1, 1, 1}, {0.857347f})
      .expect<float>(3, {1, 2, 1, 3}, of_p)
      .expect<float>(4, {1, 2, 1, 1}, {0.141737f, 0.346567f});
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 3}, p)
      .input<float>({1, 3, 1}, r)
      .input<float>({1, 1}, {0.3f})
      .input<float>({1, 1, 1}, {0.4f})
      .absent()
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .attr("cell", "gru")
      .attr("linear_before_reset", int64_t{1})
      .outputs(4)
      .run()
      .expect<float>(0, {1, 2, 1, 3}, {-0.125077f, 0.0175428f, 0.127797f, -0.0248817f, 0.0178113f, 0.11027f})
      .expect<float>(1, {1, 2, 1, 1}, {0.4f, 0.545154f})
      .expect<float>(2, {1, 1, 1}, {0.828723f})
      .expect<float>(3, {1, 2, 1, 3},
                     {-0.125077f, 0.0175428f, 0.0452841f, -0.0248817f, 0.0178113f, 0.0715418f});
}

// An RNN of one direction, two steps, two rows and two states, but for what a case changes.
class RecurrentGradientShapes {
 public:
  std::vector<std::vector<int64_t>> dims{{1, 2, 2, 2}, {1, 2, 2},    {1, 2},    {1, 2, 2},
                                         {1, 2, 2},    {2, 1, 2, 2}, {1, 2, 2}, {1, 2, 2}};
  void refused(const std::string& why, const char* cell = "rnn", size_t outputs = 3) const {
    OpCase op("RecurrentGradient", 1, kOurs);
    for (const auto& sizes : dims) {
      int64_t count = 1;
      for (int64_t d : sizes) count *= d;
      op.input<float>(sizes, std::vector<float>(static_cast<size_t>(count), 0.5f));
    }
    refuses(op.attr("cell", cell).outputs(outputs), why);
  }
};

TEST(RecurrentGradient, RefusesOtherShapes) {
  const std::vector<std::vector<int64_t>> smaller{{1, 2, 2, 1}, {1, 1, 2},    {1, 1},    {1, 1, 2},
                                                  {1, 2, 1},    {1, 1, 2, 2}, {1, 2, 1}, {2, 2}};
  for (size_t i = 0; i < smaller.size(); ++i) {
    RecurrentGradientShapes shapes;
    shapes.dims[i] = smaller[i];
    shapes.refused("input " + std::to_string(i) + ": expected shape");
  }
  RecurrentGradientShapes shapes;
  shapes.refused("input 0: expected shape", "lstm", 4);
  shapes.refused("input 0: expected shape", "gru", 5);
  shapes.refused("'cell'", "cell");
  shapes.dims[1] = {2, 2};
  shapes.refused("expected a rank from 3");
  shapes.dims[1] = {1, 0, 0};
  shapes.refused("R has shape");
  shapes.dims[0] = {3, 2, 2, 2};
  shapes.dims[1] = {3, 2, 2};
  shapes.refused("one direction or two");
}

TEST(RecurrentGradient, RefusesOtherOutputsThanItsCellHas) {
  const RecurrentGradientShapes shapes;
  shapes.refused("expected 3 outputs", "rnn", 4);
  shapes.refused("expected 4 outputs", "lstm", 3);
  shapes.refused("expected 4 outputs", "lstm", 5);
  shapes.refused("expected 5 outputs", "gru", 4);
}

TEST(RecurrentGradient, RefusesOtherTypes) {
  refuses(OpCase("RecurrentGradient", 1, kOurs)
              .input<int64_t>({1, 1, 1, 1}, {1})
              .input<int64_t>({1, 1, 1}, {1})
              .attr("cell", "rnn")
              .outputs(3),
          "type int64 is not allowed");
  refuses(OpCase("RecurrentGradient", 1, kOurs)
              .input<float>({1, 1, 1, 1}, {1})
              .input<double>({1, 1, 1}, {1})
              .attr("cell", "rnn")
              .outputs(3),
          "expected one type");
  refuses(
      OpCase("RecurrentGradient", 1, kOurs).input<float>({1, 1, 1, 1}, {1}).attr("cell", "rnn").outputs(3),
      "inputs");
}

}  // namespace
}  // namespace plimsoll
