// Normalizations, softmax and losses over classes against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

TEST(Gradients, Softmax) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    GradientCase(op).input({3, 7}).check();
    GradientCase(op).input({3, 37}).check();
    GradientCase(op).input({2, 5, 4}).attr("axis", int64_t{1}).check();
    GradientCase(op).input({2, 3, 4}).attr("axis", int64_t{0}).check();
    GradientCase(op, 11).input({2, 3, 4}).attr("axis", int64_t{1}).check();
  }
}

TEST(Gradients, SoftmaxCrossEntropyLoss) {
  const std::vector<int64_t> targets{1, 0, 3, 2, 2, 1};
  for (const char* reduction : {"mean", "sum", "none"}) {
    GradientCase("SoftmaxCrossEntropyLoss", 13)
        .input({6, 4})
        .given<int64_t>({6}, targets)
        .attr("reduction", reduction)
        .check();
    GradientCase("SoftmaxCrossEntropyLoss", 13)
        .input({2, 4, 3})
        .given<int64_t>({2, 3}, targets)
        .fixed<double>({4}, {0.5, 1.5, 1, 2})
        .attr("ignore_index", int64_t{2})
        .attr("reduction", reduction)
        .only_double()
        .check();
  }
  GradientCase("SoftmaxCrossEntropyLoss", 13).input({6, 4}).given<int64_t>({6}, targets).outputs(2).check();
  GradientCase("SoftmaxCrossEntropyLoss", 13)
      .input({6, 300})
      .given<int64_t>({6}, targets)
      .attr("ignore_index", int64_t{-1})
      .check();
}

TEST(Gradients, NegativeLogLikelihoodLoss) {
  const std::vector<int64_t> targets{1, 0, 3, 2, 2, 1};
  for (const char* reduction : {"mean", "sum", "none"}) {
    GradientCase("NegativeLogLikelihoodLoss", 13)
        .input({6, 4})
        .given<int64_t>({6}, targets)
        .attr("reduction", reduction)
        .check();
    GradientCase("NegativeLogLikelihoodLoss", 13)
        .input({2, 4, 3})
        .given<int64_t>({2, 3}, targets)
        .fixed<double>({4}, {0.5, 1.5, 1, 2})
        .attr("ignore_index", int64_t{2})
        .attr("reduction", reduction)
        .only_double()
        .check();
  }
}

TEST(Gradients, LayerNormalization) {
  GradientCase("LayerNormalization").input({3, 7}).input({7}).input({7}).check();
  GradientCase("LayerNormalization").input({3, 2, 37}).symbol(0, "n").input({37}).input({37}).check();
  GradientCase("LayerNormalization").input({40, 5}).input({5}).check();
  GradientCase("LayerNormalization")
      .input({2, 3, 4})
      .input({3, 4})
      .input({3, 4})
      .attr("axis", int64_t{1})
      .check();
  GradientCase("LayerNormalization").input({3, 7}).input({1}).input({7}).check();
}

TEST(Gradients, RMSNormalization) {
  GradientCase("RMSNormalization").input({3, 7}).input({7}).check();
  GradientCase("RMSNormalization").input({2, 3, 4}).input({3, 4}).attr("axis", int64_t{1}).check();
  GradientCase("RMSNormalization").input({2, 3, 4}).input({3, 1}).check();
}

TEST(Gradients, BatchNormalizationInTraining) {
  const std::vector<double> mean{0.5, -0.5, 0.25}, variance{1, 2, 0.5};
  for (const Ints& dims : {Ints{4, 3, 2, 5}, Ints{5, 3}, Ints{2, 3, 7}}) {
    GradientCase("BatchNormalization", 15)
        .input(dims)
        .input({3})
        .input({3})
        .fixed<double>({3}, mean)
        .fixed<double>({3}, variance)
        .attr("training_mode", int64_t{1})
        .outputs(3)
        .unused_output(1)
        .unused_output(2)
        .check();
  }
}

TEST(Gradients, BatchNormalizationInInference) {
  GradientCase("BatchNormalization", 15)
      .input({4, 3, 2, 5})
      .input({3})
      .input({3})
      .input({3})
      .input({3}, 0.5, 2)
      .check();
  GradientCase("BatchNormalization", 9)
      .input({4, 3})
      .input({3})
      .input({3})
      .input({3})
      .input({3}, 0.5, 2)
      .check();
}

TEST(Gradients, InstanceNormalization) {
  GradientCase("InstanceNormalization").input({2, 3, 4, 5}).input({3}).input({3}).check();
  GradientCase("InstanceNormalization").input({2, 3, 7}).symbol(2, "w").input({3}).input({3}).check();
}

TEST(Gradients, GroupNormalization) {
  GradientCase("GroupNormalization", 21)
      .input({2, 6, 3, 4})
      .input({6})
      .input({6})
      .attr("num_groups", int64_t{2})
      .check();
  GradientCase("GroupNormalization", 18)
      .input({2, 6, 3, 4})
      .input({2})
      .input({2})
      .attr("num_groups", int64_t{2})
      .check();
}

TEST(Gradients, MeanVarianceNormalization) {
  GradientCase("MeanVarianceNormalization").input({2, 3, 4, 5}).check();
  GradientCase("MeanVarianceNormalization").input({2, 3, 4}).attr("axes", Ints{1, -1}).check();
}

TEST(Gradients, LpNormalization) {
  GradientCase("LpNormalization").input({3, 5}).check();
  GradientCase("LpNormalization").input({3, 5}).attr("p", int64_t{1}).attr("axis", int64_t{0}).check();
}

}  // namespace
}  // namespace plimsoll
