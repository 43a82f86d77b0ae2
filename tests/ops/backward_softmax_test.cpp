// Operators that gradients make of Softmax and the losses over classes.
#include <memory>

#include "ops/backward_case.h"

namespace plimsoll {
namespace {

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

}  // namespace
}  // namespace plimsoll
